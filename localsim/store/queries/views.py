"""The views about participants of experiments, a part of `schema.VIEWS`: name -> (comment, query).

Their rows are annotations: one with the task `participant` for each person, and one for each answer.
"""

from __future__ import annotations

PARTICIPANTS: dict[str, tuple[str, str]] = {
    "v_participants": (
        "Participants of experiments with people, by random codes; nothing says who they are",
        """SELECT a.run_id, a.item_id AS experiment, a.rater AS participant,
       a.value_json ->> '$.condition' AS condition,
       a.value_json ->> '$.status' AS status, (a.value_json ->> '$.place')::INTEGER AS place,
       a.value_json ->> '$.consent' AS consent_version, a.created_utc AS consented_utc, a.seconds,
       a.value_json ->> '$.completion' AS completion_code, len(json_keys(a.shown_json))::INTEGER AS talks,
       a.value_json ->> '$.description' AS description_hash
FROM annotations a WHERE a.task = 'participant'""",
    ),
    "v_participant_talks": (
        "Talks of participants of experiments: their condition, role, messages and outcome",
        """SELECT p.run_id, p.item_id AS experiment, p.rater AS participant,
       p.value_json ->> '$.condition' AS condition,
       p.talk::INTEGER AS talk, e.episode_id, p.value_json ->> ('$.roles."' || p.talk || '"') AS role, s.scenario_id,
       e.mode, e.see, e.model, e.status, e.stop_reason, e.error, e.turns,
       (SELECT count(*) FROM turns t WHERE t.episode_id = e.episode_id
        AND t.speaker = p.value_json ->> ('$.roles."' || p.talk || '"')) AS messages,
       c.value AS success
FROM (SELECT *, unnest(json_keys(shown_json)) AS talk FROM annotations WHERE task = 'participant') p
JOIN episodes e ON e.run_id = p.run_id AND e.episode_id = p.shown_json ->> ('$."' || p.talk || '"')
JOIN scenarios s ON s.scenario_hash = e.scenario_hash
LEFT JOIN v_scores c ON c.run_id = e.run_id AND c.episode_id = e.episode_id AND c.name = 'success' AND c.agent IS NULL
     AND c.newest""",
    ),
    "v_participant_answers": (
        "Answers of participants of experiments: to forms before and after the talk, about messages, and to a rubric",
        """SELECT p.run_id, p.item_id AS experiment, p.rater AS participant,
       p.value_json ->> '$.condition' AS condition,
       p.value_json ->> '$.status' AS status, a.task AS part, split_part(a.item_id, '/', -2) AS bank,
       split_part(a.item_id, '/', -1) AS item, a.value_json ->> '$.value' AS value,
       (a.value_json ->> '$.number')::DOUBLE AS number, (a.value_json ->> '$.right')::BOOLEAN AS is_right,
       a.shown_json ->> '$."1"' AS episode_id, (a.value_json ->> '$.turn')::INTEGER AS turn,
       a.created_utc AS answered_utc, nullif(a.value_json ->> '$.agent', '') AS agent
FROM annotations a JOIN annotations p ON p.run_id = a.run_id AND p.rater = a.rater AND p.task = 'participant'
WHERE a.task IN ('before', 'after', 'message', 'rubric')""",
    ),
    "v_rubric_ratings": (
        "Answers of participants to a rubric about a talk, each beside the score of a judge with the same rubric",
        """SELECT r.run_id, r.experiment, r.participant, r.condition, r.status, r.rubric, r.dimension, r.version,
       r.episode_id, e.mode, e.model, r.role, r.agent, coalesce(r.agent = r.role, false) AS own, r.rating,
       substr(c.evaluator, len(r.prefix) + 1) AS judge, c.value AS score, c.reason
FROM (SELECT p.run_id, p.item_id AS experiment, p.rater AS participant, p.value_json ->> '$.condition' AS condition,
             p.value_json ->> '$.status' AS status, split_part(a.item_id, '/', -2) AS rubric,
             split_part(a.item_id, '/', -1) AS dimension, a.value_json ->> '$.version' AS version,
             a.shown_json ->> '$."1"' AS episode_id, a.value_json ->> '$.role' AS role,
             nullif(a.value_json ->> '$.agent', '') AS agent, (a.value_json ->> '$.number')::DOUBLE AS rating,
             CASE WHEN split_part(a.item_id, '/', -2) = 'sotopia' THEN 'judge.'
                  ELSE 'rubric.' || split_part(a.item_id, '/', -2) || '.' END AS prefix
      FROM annotations a JOIN annotations p ON p.run_id = a.run_id AND p.rater = a.rater AND p.task = 'participant'
      WHERE a.task = 'rubric') r
JOIN episodes e ON e.run_id = r.run_id AND e.episode_id = r.episode_id
LEFT JOIN scores c ON e.episode_id = c.episode_id AND c.name = r.dimension AND c.agent = coalesce(r.agent, '')
     AND c.version = r.version AND starts_with(c.evaluator, r.prefix)""",
    ),
}
