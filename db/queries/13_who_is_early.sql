-- Early disclosures: which facts did their owners disclose before the scenario allowed it?
SELECT mode, owner, fact_id, count(*) AS talks, round(min(position), 2) AS earliest
FROM v_leaks WHERE early AND kind = 'self' GROUP BY mode, owner, fact_id ORDER BY talks DESC, mode, owner, fact_id LIMIT 10;
