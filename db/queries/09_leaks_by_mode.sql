-- Leaks by mode: facts disclosed by their owner (self), or used by an agent that had not been told (omniscient).
SELECT mode, kind, count(*) AS facts, round(avg(position), 2) AS position, sum(early::INTEGER)::BIGINT AS early
FROM v_leaks GROUP BY mode, kind ORDER BY mode, kind;
