-- Tokens: written, evaluated and prompted. A prompt token that comes from the cache is not evaluated again.
SELECT e.family, g.mode, g.model AS player, sum(g.generated_tokens) AS generated,
       sum(g.evaluated_tokens) AS evaluated, sum(g.prompt_tokens) AS prompted
FROM v_generations g JOIN v_episodes e USING (episode_id) WHERE g.run_id = $run GROUP BY ALL ORDER BY ALL;
