-- Malformed replies: which replies could not be parsed, and why?
SELECT e.family, g.mode, g.model AS player, g.malformed, count(*) AS replies
FROM v_generations g JOIN v_episodes e USING (episode_id)
WHERE g.run_id = $run AND g.malformed IS NOT NULL GROUP BY ALL ORDER BY replies DESC, family, mode, player, malformed;
