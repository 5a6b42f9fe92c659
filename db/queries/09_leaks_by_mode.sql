-- Private facts that came out: by their owners, or used by somebody who had not been told.
SELECT mode, kind, count(*) AS facts, round(avg(position), 2) AS position, sum(early::INTEGER)::BIGINT AS early
FROM v_leaks GROUP BY mode, kind ORDER BY mode, kind;
