-- Disclosure curve: how many facts are out after each quarter of the conversation?
SELECT family, mode, model AS player, count(*) FILTER (position < 0.25) AS first_quarter,
       count(*) FILTER (position < 0.5) AS half, count(*) FILTER (position < 0.75) AS three_quarters,
       count(*) AS whole_talk
FROM v_leaks WHERE run_id = $run GROUP BY ALL ORDER BY family, mode, player;
