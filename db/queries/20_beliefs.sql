-- Beliefs: before each turn, how close is what an agent believes (step `believe`) to the exact posterior? The run is scored
-- with `--evaluator beliefs`. `agrees` is to be read beside `chance`, `loss` (bits) beside `least`, that of the posterior.
WITH asked AS (
  SELECT family, mode, model, name, unnest(from_json(turns_json, '["INTEGER"]')) AS turn,
         unnest(string_split(split_part(reason, ': ', 2), ' '))::DOUBLE AS value
  FROM v_scores WHERE run_id = $run AND newest AND evaluator = 'beliefs' AND value IS NOT NULL
)
SELECT family, mode, model AS player, turn + 1 AS turn, round(avg(value) FILTER (name = 'belief_agrees'), 2) AS agrees,
       round(avg(value) FILTER (name = 'belief_chance'), 2) AS chance,
       round(avg(value) FILTER (name = 'belief_loss'), 2) AS loss,
       round(avg(value) FILTER (name = 'belief_entropy'), 2) AS least,
       round(avg(value) FILTER (name = 'belief_distance'), 3) AS distance,
       count(*) FILTER (name = 'belief_agrees') AS questions
FROM asked GROUP BY ALL ORDER BY ALL;
