-- Ends of conversations: why do they stop, by mode?
SELECT mode, stop_reason, count(*) AS episodes FROM v_episodes GROUP BY mode, stop_reason ORDER BY mode, stop_reason;
