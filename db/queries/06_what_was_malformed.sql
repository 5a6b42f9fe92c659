-- Malformed replies: which replies could not be parsed, and why?
SELECT mode, model, malformed, count(*) AS replies FROM v_generations
WHERE malformed IS NOT NULL GROUP BY ALL ORDER BY replies DESC;
