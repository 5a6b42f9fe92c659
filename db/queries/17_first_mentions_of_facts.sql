-- First mentions of facts: in scenarios of your own, in which turn (from 1) is a term of a fact first uttered, and how
-- often by its owner? `talks` also counts conversations that never utter one.
WITH agents AS (
  SELECT scenario_hash, unnest(CAST(document_json -> 'agents' AS JSON[])) AS agent FROM scenarios
), facts AS (
  SELECT scenario_hash, agent ->> 'name' AS owner, unnest(CAST(agent -> 'facts' AS JSON[])) AS fact FROM agents
), terms AS (
  SELECT scenario_hash, owner, fact ->> 'id' AS fact, unnest(CAST(fact -> 'terms' AS TEXT[])) AS term FROM facts
), found AS (
  SELECT e.mode, e.model AS player, f.fact, f.owner, e.episode_id, min(t.turn) + 1 AS turn,
         arg_min(t.speaker, t.turn) AS speaker
  FROM v_episodes e JOIN terms f USING (scenario_hash) LEFT JOIN v_turns t
    ON t.episode_id = e.episode_id AND regexp_matches(t.text, '(?i)(^|\W)' || regexp_escape(f.term) || '($|\W)')
  WHERE e.run_id = $run AND e.status = 'completed' AND e.family IS NULL GROUP BY ALL
)
SELECT mode, player, fact, round(avg(turn), 1) AS first_turn, count(turn) AS mentioned,
       count(*) FILTER (speaker = owner) AS by_owner, count(*) AS talks
FROM found GROUP BY ALL ORDER BY ALL;
