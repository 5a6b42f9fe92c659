-- How conversations end.
SELECT mode, stop_reason, count(*) AS episodes FROM v_episodes GROUP BY mode, stop_reason ORDER BY mode, stop_reason;
