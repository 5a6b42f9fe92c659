-- What a run cost, and how much of the prompts was in the cache.
SELECT mode, sum(generated_tokens) AS generated, sum(evaluated_tokens) AS evaluated, sum(prompt_tokens) AS prompted
FROM v_generations GROUP BY mode ORDER BY mode;
