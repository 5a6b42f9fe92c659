-- Paired outcomes: success of the same scenario and seed in script and agents mode.
SELECT s.family, s.scenario_id, e.seed, s.model AS player,
       max(s.value) FILTER (s.mode = 'script') AS script,
       max(s.value) FILTER (s.mode = 'agents') AS agents
FROM v_scores s JOIN v_episodes e USING (episode_id)
WHERE s.run_id = $run AND s.name = 'success' AND s.newest
GROUP BY s.family, s.scenario_id, e.seed, s.model ORDER BY ALL;
