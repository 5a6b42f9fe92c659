-- Deal rate: how many bargains with a known ending end in a deal? (paper: script 94%, agents 30%)
SELECT family, mode, model AS player, round(avg(value), 2) AS deal_rate, count(*) AS episodes
FROM v_scores WHERE run_id = $run AND name = 'deal' AND newest GROUP BY ALL ORDER BY ALL;
