-- First mention by mode: how early is a true mutual friend named? (paper: script .13, agents .39)
SELECT mode, round(avg(value), 2) AS first_mention, count(*) AS episodes_with_one
FROM v_scores WHERE name = 'first_mention' GROUP BY mode ORDER BY mode;
