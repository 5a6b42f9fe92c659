-- Paired outcomes: success of the same scenario and seed in script and agents mode.
SELECT s.scenario_id, e.seed,
       max(s.value) FILTER (s.mode = 'script') AS script,
       max(s.value) FILTER (s.mode = 'agents') AS agents
FROM v_scores s JOIN v_episodes e USING (episode_id)
WHERE s.name = 'success' AND s.newest GROUP BY s.scenario_id, e.seed ORDER BY s.scenario_id, e.seed;
