-- Predictions: how often is the other's next choice foreseen, and how sure is the player of it? They are moves `predict`, or
-- those of the step `predict` of a mind. `brier` is 0 for certainty that is right and .25 for who always says half; it is
-- empty without weights of options (scripted players, servers).
WITH foretold AS (
  SELECT p.episode_id, p.family, p.scenario_id, p.mode, p.model, p.turn, p.generation,
         p.values_json ->> 0 AS predicted, arg_min(c.values_json ->> 0, c.turn) AS chosen
  FROM v_turns p JOIN v_turns c ON c.episode_id = p.episode_id AND c.speaker <> p.speaker AND c.turn > p.turn
  WHERE p.run_id = $run AND p.action = 'predict' AND c.action = 'choose' GROUP BY ALL
  UNION ALL
  SELECT p.episode_id, c.family, c.scenario_id, p.mode, p.model, p.turn, p.generation, trim(p.text) AS predicted,
         arg_min(if(c.action = 'choose', lower(c.values_json ->> 0), c.action), c.turn) AS chosen
  FROM v_generations p JOIN v_turns c ON c.episode_id = p.episode_id AND c.speaker <> p.speaker AND c.turn > p.turn
  WHERE p.run_id = $run AND p.step = 'predict' AND c.action NOT IN ('speak', 'predict', 'told') GROUP BY ALL
)
SELECT family, scenario_id, mode, f.model AS player, round(avg((predicted = chosen)::INT), 2) AS foreseen,
       round(avg(power(1 - (g.details_json -> '$.options[#-1].options' -> chosen ->> 'share')::DOUBLE, 2)), 3) AS brier,
       count(*) AS predictions
FROM foretold f LEFT JOIN generations g USING (episode_id, generation) GROUP BY ALL ORDER BY ALL;
