-- Ends of bargains: why does bargaining stop, and after how many turns?
SELECT family, mode, model AS player, stop_reason, round(avg(turns), 1) AS turns, count(*) AS talks
FROM v_episodes WHERE run_id = $run AND family = 'craigslist' GROUP BY ALL ORDER BY family, mode, player, stop_reason;
