-- Deal rate by mode: how often does bargaining end in a deal? (paper: script 94%, agents 30%)
SELECT e.mode, round(avg(CASE WHEN s.label = 'deal' THEN 1 ELSE 0 END), 2) AS deal_rate, count(*) AS episodes
FROM v_episodes e JOIN v_scores s USING (episode_id)
WHERE s.name = 'ending' AND s.newest AND e.status = 'completed' GROUP BY e.mode ORDER BY e.mode;
