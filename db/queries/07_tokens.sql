-- Tokens: written, evaluated and prompted, by mode. A prompt token that comes from the cache is not evaluated again.
SELECT mode, sum(generated_tokens) AS generated, sum(evaluated_tokens) AS evaluated, sum(prompt_tokens) AS prompted
FROM v_generations GROUP BY mode ORDER BY mode;
