-- Success and leaks: within a family, mode and player, do conversations with an untold fact succeed more often?
-- Families differ in both, so without the family the answer would compare one task with another.
SELECT s.family, s.mode, s.model AS player, coalesce(l.leaks, 0) > 0 AS omniscient,
       round(avg(s.value), 2) AS success, count(*) AS talks
FROM v_scores s LEFT JOIN (SELECT episode_id, count(*) AS leaks FROM v_leaks WHERE kind = 'omniscient' GROUP BY 1) l
  ON l.episode_id = s.episode_id
WHERE s.run_id = $run AND s.name = 'success' AND s.newest GROUP BY ALL ORDER BY s.family, s.mode, player, omniscient;
