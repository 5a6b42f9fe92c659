-- Persona scores: each task as the mean over judges (rubric personascore) of the replies that could be read, and the mean
-- of these tasks, as in PersonaGym (arXiv 2407.18416). `apart` is the mean distance of the judges over the tasks.
WITH tasks AS (
  SELECT family, mode, scenario_id, model, agent, name, evaluator, avg(value) AS points FROM v_scores
  WHERE run_id = $run AND newest AND starts_with(evaluator, 'rubric.personascore.') AND value IS NOT NULL
    AND name IN ('action', 'justification', 'habits', 'consistency', 'toxicity') GROUP BY ALL
), joined AS (
  SELECT family, mode, scenario_id, model, agent, name, avg(points) AS points, max(points) - min(points) AS apart,
         count(*) AS judges
  FROM tasks GROUP BY ALL
)
SELECT family, mode, scenario_id, agent, model AS player, max(judges) AS judges, count(*) AS tasks,
       round(avg(points), 2) AS persona_score, round(avg(apart), 2) AS apart
FROM joined GROUP BY ALL ORDER BY ALL;
