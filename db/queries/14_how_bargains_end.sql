-- Ends of bargains: why does bargaining stop, and after how many turns?
SELECT mode, stop_reason, round(avg(turns), 1) AS turns, count(*) AS talks
FROM v_episodes WHERE family = 'craigslist' GROUP BY mode, stop_reason ORDER BY mode, stop_reason;
