-- Deal rate by mode: how many bargains with a known ending end in a deal? (paper: script 94%, agents 30%)
SELECT mode, round(avg(value), 2) AS deal_rate, count(*) AS episodes
FROM v_scores WHERE name = 'deal' AND newest GROUP BY mode ORDER BY mode;
