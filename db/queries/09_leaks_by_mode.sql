-- Leaks: facts disclosed by their owner (self), or used by an agent that had not been told (omniscient).
SELECT family, mode, model AS player, kind, count(*) AS facts, round(avg(position), 2) AS position,
       sum(early::INTEGER)::BIGINT AS early
FROM v_leaks WHERE run_id = $run GROUP BY ALL ORDER BY family, mode, player, kind;
