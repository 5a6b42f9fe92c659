-- Early disclosures: which facts did their owners disclose before the scenario allowed it?
SELECT family, mode, model AS player, owner, fact_id, count(*) AS talks, round(min(position), 2) AS earliest
FROM v_leaks WHERE run_id = $run AND early AND kind = 'self' GROUP BY ALL
ORDER BY talks DESC, family, mode, player, owner, fact_id LIMIT 10;
