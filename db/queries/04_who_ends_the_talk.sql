-- Ends of conversations: why do they stop?
SELECT family, mode, model AS player, stop_reason, count(*) AS episodes
FROM v_episodes WHERE run_id = $run GROUP BY ALL ORDER BY ALL;
