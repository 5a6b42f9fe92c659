"""The other wordings: each says the same as the usual one, in other words, so that `run --perturb` can compare them."""

from __future__ import annotations

from localsim.conversation.wording.wordings import LEVELS, RELATED, USUAL, Wording, acts

OTHERS = (
    Wording(
        role="Your name is {me}, and you are in a conversation with {others}. Keep to this role.",
        setting="Situation: {text}",
        relationship="{one} and {other}: {level}.",
        levels=LEVELS,
        profiles=("About you: {text}", "About {name}: {text}"),
        age="aged {text}",
        goals=("Your aim: {text}", "{name}'s aim: {text}"),
        secrets=("What you keep secret: {text}", "What {name} keeps secret: {text}"),
        facts=("You know this:", "{name} knows this:"),
        open="Everybody knows all of this: your side is visible to {others} as well.",
        closed="Your aim, your secret and what you know are hidden from {others}.",
        closed_goal="Your aim is hidden from {others}.",
        reply="Answer with your next line, in one or two short sentences.",
        actions=acts(
            "For speaking",
            "For a look or a gesture, put into words",
            "For doing something, put into words",
            "For ending the conversation, with a goodbye if you like",
            "For doing nothing",
        ),
        limit="The conversation has {turns} turns at most. What was said is not to be repeated.",
        first_turn="The conversation starts now. The turn is yours.",
        your_turn="The turn is yours.",
        write="Compose a conversation between {names}.",
        each_line="Every turn is one line of one or two short sentences.",
        write_now="Now compose the conversation. The first turn is {first}'s, and the order of turns is: {names}.",
        about="On {name}: {text}",
        lines="Compose the conversation: each turn is one line.",
        play=(
            "You write the lines of {name} and nobody else's. Reply truthfully to the last line, then "
            "ask or tell something that helps {name} with the aim. Say no line twice. When the aim is "
            "settled, say goodbye."
        ),
        script="Write lines that reply to the last one and help the speaker with the aim. Say no line twice.",
        length="A line is one or two short sentences, as people speak.",
        leave="If you want to say goodbye and go, start the line with {start}",
        who="Your name is {name}.",
        begin="The first line is yours.",
        answer="Reply, and say something that helps your aim.",
        go_on="Say something new that helps your aim.",
        settle="Say something new that helps your aim; if it is settled, say goodbye with {start}.",
        end="There is no more time: say goodbye with {start}.",
        script_end=(
            "Compose {few} to {many} lines. Every line says something new. The last one is a goodbye with [leave]."
        ),
    ),
    Wording(
        role="You play {me} and talk with {others}. Remain in this role.",
        setting="Scene: {text}",
        relationship="{one} and {other} {level}.",
        levels=RELATED,
        profiles=("Who you are: {text}", "Who {name} is: {text}"),
        age="age {text}",
        goals=("Your objective: {text}", "{name}'s objective: {text}"),
        secrets=("Your own secret: {text}", "{name}'s own secret: {text}"),
        facts=("These things are known to you:", "These things are known to {name}:"),
        open="None of this is hidden from anybody: {others} can look at your side, too.",
        closed="Your objective, your secret and the things known to you cannot be seen by {others}.",
        closed_goal="Your objective cannot be seen by {others}.",
        reply="Give your next line: one short sentence, or two.",
        actions=acts(
            "If you speak",
            "If you make a gesture or give a look, told in words",
            "If you do something, told in words",
            "If you end the conversation, possibly with a goodbye",
            "If you do nothing",
        ),
        limit="All in all there are {turns} turns or fewer. Do not say the same again.",
        first_turn="This is the beginning of the conversation. Your turn has come.",
        your_turn="Your turn has come.",
        write="Your task is to write a conversation between {names}.",
        each_line="A turn takes one line: one short sentence, or two.",
        write_now="Please write the conversation. It begins with {first}; the turns follow this order: {names}.",
        about="Who {name} is: {text}",
        lines="Please write the conversation, with a line for each turn.",
        play=(
            "Write only the lines of {name}. React truthfully to what was said last, and then ask or "
            "say something that brings {name} closer to the objective. Do not write a line twice. Say "
            "goodbye once the objective is settled."
        ),
        script=(
            "Write lines that react to the last one and bring the speaker closer to the objective. Do "
            "not write a line twice."
        ),
        length="One line has one or two short spoken sentences.",
        leave="A line that says goodbye and goes begins with {start}",
        who="You play {name}.",
        begin="You start the conversation.",
        answer="React, and say something for your objective.",
        go_on="Say something new for your objective.",
        settle="Say something new for your objective; once it is settled, say goodbye with {start}.",
        end="Time is up: say goodbye with {start}.",
        script_end=(
            "There are {few} to {many} lines. Let each line say something new. In the last line somebody "
            "says goodbye with [leave]."
        ),
    ),
    Wording(
        role="In this conversation with {others} you are {me}. Do not step out of this role.",
        setting="The setting: {text}",
        relationship="Relationship of {one} and {other}: {level}.",
        levels=LEVELS,
        profiles=("Your profile: {text}", "Profile of {name}: {text}"),
        age="{text} years of age",
        goals=("The goal you have: {text}", "The goal of {name}: {text}"),
        secrets=("The secret you have: {text}", "The secret of {name}: {text}"),
        facts=("The facts you know:", "The facts {name} knows:"),
        open="Everybody is aware of all of this; what is on your side can be seen by {others} too.",
        closed="Your goal, your secret and the facts you know cannot be seen by {others}.",
        closed_goal="Your goal cannot be seen by {others}.",
        reply="Write your next line. It has one or two short sentences.",
        actions=acts(
            "Speaking",
            "A gesture or a look, in words",
            "Doing something, in words",
            "Ending the conversation, perhaps by a goodbye",
            "Doing nothing",
        ),
        limit="The number of turns is at most {turns}. Avoid repeating what was said.",
        first_turn="Here the conversation begins. You have the turn.",
        your_turn="You have the turn.",
        write="Produce a conversation between {names}.",
        each_line="Give each turn one line, with one or two short sentences.",
        write_now="Produce the conversation now. {first} takes the first turn. The turns go in this order: {names}.",
        about="Profile of {name}: {text}",
        lines="Produce the conversation. Each turn takes one line.",
        play=(
            "The lines that you write are {name}'s only. Give a truthful answer to the last line, then "
            "ask or tell something that moves {name} towards the goal. No line comes twice. After the "
            "goal is settled, say goodbye."
        ),
        script="The lines answer the last one and move the speaker towards the goal. No line comes twice.",
        length="Lines are short: one or two spoken sentences.",
        leave="For a goodbye before going, the line begins with {start}",
        who="In this conversation you are {name}.",
        begin="You have the first turn.",
        answer="Give an answer, and say something towards your goal.",
        go_on="Say something new towards your goal.",
        settle="Say something new towards your goal; where it is settled, say goodbye with {start}.",
        end="The end has come: say goodbye with {start}.",
        script_end=(
            "Length: {few} to {many} lines. Something new is said in each line. It ends with a goodbye with [leave]."
        ),
    ),
    Wording(
        role="You take the part of {me}, who is talking with {others}. Stay with this part.",
        setting="This is the situation: {text}",
        relationship="What {one} and {other} are to each other: {level}.",
        levels=LEVELS,
        profiles=("This is you: {text}", "This is {name}: {text}"),
        age="{text} years old",
        goals=("What you want to achieve: {text}", "What {name} wants to achieve: {text}"),
        secrets=("Your secret is this: {text}", "{name}'s secret is this: {text}"),
        facts=("You have this knowledge:", "{name} has this knowledge:"),
        open="All of this is open to everybody, so {others} can also see your side.",
        closed="It is not visible to {others} what you want to achieve, what your secret is or what you know.",
        closed_goal="It is not visible to {others} what you want to achieve.",
        reply="Say your next line. One or two short sentences are enough, not more.",
        actions=acts(
            "Speech looks like this",
            "A gesture or a look, expressed in words, looks like this",
            "Something that you do, expressed in words, looks like this",
            "The end of the conversation, with or without a goodbye, looks like this",
            "Doing nothing looks like this",
        ),
        limit="No more than {turns} turns are possible in all. Words that were said should not come again.",
        first_turn="The conversation opens here, and it is up to you.",
        your_turn="It is up to you.",
        write="Please write a conversation that takes place between {names}.",
        each_line="For each turn write one line; one or two short sentences are enough, not more.",
        write_now="Begin the conversation now. {first} opens it, and then the turns pass on in this order: {names}.",
        about="This is {name}: {text}",
        lines="Write the conversation that takes place, one line a turn.",
        play=(
            "Only {name}'s lines are written by you. Answer the last words truthfully, and go on with "
            "a question or a word that helps {name} to achieve the goal. Repeat no line. When "
            "everything is settled, say goodbye."
        ),
        script="Each line answers the last words and helps the speaker to achieve the goal. Repeat no line.",
        length="For each line, one or two short spoken sentences are enough.",
        leave="Words of goodbye before you go begin with {start}",
        who="You take the part of {name}.",
        begin="You open the conversation.",
        answer="Answer, with a word that helps you to achieve your goal.",
        go_on="Say a new thing that helps you to achieve your goal.",
        settle="Say a new thing that helps you to achieve your goal; if all is settled, say goodbye with {start}.",
        end="It is time to go: say goodbye with {start}.",
        script_end=(
            "It takes {few} to {many} lines. A new thing is said in each line. The final line is a goodbye "
            "with [leave]."
        ),
    ),
    Wording(
        role="Be {me} in a talk with {others}. Do not give up this role.",
        setting="Background: {text}",
        relationship="{one} and {other} {level}.",
        levels=RELATED,
        profiles=("You, in short: {text}", "{name}, in short: {text}"),
        age="{text} years old",
        goals=("You want this: {text}", "{name} wants this: {text}"),
        secrets=("You hide this: {text}", "{name} hides this: {text}"),
        facts=("You know the following:", "{name} knows the following:"),
        open="Everyone can see all of this, and {others} can see your side as well.",
        closed="What you want, hide and know stays invisible to {others}.",
        closed_goal="What you want stays invisible to {others}.",
        reply="Now your next line, in no more than two short sentences.",
        actions=acts(
            "When you talk",
            "When you use a gesture or a look, written out",
            "When you do something, written out",
            "When you end the talk, maybe saying goodbye",
            "When you do nothing",
        ),
        limit="The talk ends after {turns} turns at the latest. Nothing that was said should be repeated.",
        first_turn="The talk begins. You may go.",
        your_turn="You may go.",
        write="Write down how {names} talk with each other.",
        each_line="Put each turn on one line, in no more than two short sentences.",
        write_now="Write down the talk now. {first} goes first. After that this order of turns holds: {names}.",
        about="{name}, in short: {text}",
        lines="Write down the conversation, a line for every turn.",
        play=(
            "Write for {name} alone. Respond honestly to the last line, then ask or tell something to "
            "get what {name} wants. Never say the same line again. Say goodbye when it is settled."
        ),
        script="Let each line respond to the last one, to get what the speaker wants. Never say the same line again.",
        length="Keep each line to one or two short sentences, as in speech.",
        leave="Begin a line with {start} to say goodbye and go",
        who="Be {name}.",
        begin="You go first.",
        answer="Respond, and say something to get what you want.",
        go_on="Say something new to get what you want.",
        settle="Say something new to get what you want; if that is settled, say goodbye with {start}.",
        end="No time is left: say goodbye with {start}.",
        script_end="Use {few} to {many} lines. Say new things in each line. Close with a goodbye with [leave].",
    ),
    Wording(
        role="The conversation is with {others}, and your role is {me}. Act in this role only.",
        setting="Circumstances: {text}",
        relationship="Between {one} and {other} the relationship is: {level}.",
        levels=LEVELS,
        profiles=("Description of you: {text}", "Description of {name}: {text}"),
        age="of age {text}",
        goals=("Goal for you: {text}", "Goal for {name}: {text}"),
        secrets=("Secret of yours: {text}", "Secret of {name}: {text}"),
        facts=("Knowledge of yours:", "Knowledge of {name}:"),
        open="This is common to everybody in full: your side can be read by {others}, too.",
        closed="Your goal, secret and knowledge cannot be read by {others}.",
        closed_goal="Your goal cannot be read by {others}.",
        reply="Respond with one line, your next one, of one or two short sentences.",
        actions=acts(
            "Form for speech",
            "Form for a gesture or a look, in your words",
            "Form for doing something, in your words",
            "Form for ending the conversation, with a goodbye or not",
            "Form for doing nothing",
        ),
        limit="Limit of turns: {turns} in total. Repetitions of what was said are not wanted.",
        first_turn="Start of the conversation. Next turn: yours.",
        your_turn="Next turn: yours.",
        write="Create a conversation. Its participants are {names}.",
        each_line="One turn is one line, and one line is one or two short sentences.",
        write_now="Create it now. {first} is the first to have a turn. Order of turns: {names}.",
        about="Description of {name}: {text}",
        lines="Create the conversation, one line to a turn.",
        play=(
            "Your lines are those of {name}, and no others. First comes a truthful answer to the last "
            "line, then a question or a statement that serves {name}'s goal. Lines are not repeated. "
            "With the goal settled, say goodbye."
        ),
        script="A line is an answer to the last one and serves the speaker's goal. Lines are not repeated.",
        length="Length of a line: one or two short spoken sentences.",
        leave="Form for a goodbye before going: a line that begins with {start}",
        who="Your role: {name}.",
        begin="First turn of the conversation.",
        answer="Next: an answer, and something for your goal.",
        go_on="Next: something new for your goal.",
        settle="Next: something new for your goal or, with the goal settled, a goodbye with {start}.",
        end="End of the time. Next: a goodbye with {start}.",
        script_end="Number of lines: {few} to {many}. In each line something new. Last line: a goodbye with [leave].",
    ),
    Wording(
        role="Imagine that you are {me} and that you talk with {others}. Do not fall out of this role.",
        setting="The circumstances are these: {text}",
        relationship="It holds for {one} and {other} that they {level}.",
        levels=RELATED,
        profiles=("A picture of you: {text}", "A picture of {name}: {text}"),
        age="{text} years old",
        goals=("You are trying to do this: {text}", "{name} is trying to do this: {text}"),
        secrets=("This is your secret: {text}", "This is {name}'s secret: {text}"),
        facts=("Here is what you know:", "Here is what {name} knows:"),
        open="Everybody has been told all of this, so {others} can see everything on your side.",
        closed="It will not be shown to {others} what you are trying to do, what your secret is or what you know.",
        closed_goal="It will not be shown to {others} what you are trying to do.",
        reply="Continue with your next line. Use one or two short sentences.",
        actions=acts(
            "You can speak",
            "You can make a gesture or give a look, which you describe",
            "You can do something, which you describe",
            "You can end the conversation, also with a goodbye",
            "You can do nothing",
        ),
        limit="The conversation is over after {turns} turns, if not before. Say nothing that was said already.",
        first_turn="We are at the beginning of the conversation, and you are next.",
        your_turn="You are next.",
        write="Imagine a conversation between {names}, and write it.",
        each_line="Use one line for a turn. Use one or two short sentences.",
        write_now="Write it now. Let {first} begin, and let them take turns in this order: {names}.",
        about="A picture of {name}: {text}",
        lines="Imagine the conversation and write it, a line for each turn.",
        play=(
            "Think of the lines that {name} says, and write these only. Answer truthfully what you "
            "heard last, then ask or tell something that helps {name} with the goal. Do not say a line "
            "that was said. When the goal is settled, say goodbye."
        ),
        script=(
            "Think of lines that answer the last one and help the speaker with the goal. Do not say a "
            "line that was said."
        ),
        length="Use one or two short spoken sentences for a line.",
        leave="You say goodbye and go with a line that begins with {start}",
        who="Imagine that you are {name}.",
        begin="It is you who begins.",
        answer="Answer, and say something that helps you with the goal.",
        go_on="Say something new that helps you with the goal.",
        settle="Say something new that helps you with the goal; when it is settled, say goodbye with {start}.",
        end="The conversation is at its end: say goodbye with {start}.",
        script_end=(
            "Take {few} to {many} lines. Think of something new for each line. At the end there is a "
            "goodbye with [leave]."
        ),
    ),
    Wording(
        role="Role: {me}. You talk with: {others}. Do not change your role.",
        setting="Setting of the conversation: {text}",
        relationship="{one}, {other}: {level}.",
        levels=LEVELS,
        profiles=("Profile (you): {text}", "Profile ({name}): {text}"),
        age="age: {text}",
        goals=("Goal (you): {text}", "Goal ({name}): {text}"),
        secrets=("Secret (you): {text}", "Secret ({name}): {text}"),
        facts=("Known (to you):", "Known (to {name}):"),
        open="Visibility: everybody sees all of this, and {others} can see your side too.",
        closed="Visibility: {others} can see neither your goal nor your secret nor what is known to you.",
        closed_goal="Visibility: {others} cannot see your goal.",
        reply="Reply: your next line. Length: one or two short sentences.",
        actions=acts(
            "Speak",
            "Gesture or look (in words)",
            "Do something (in words)",
            "End the conversation (a goodbye is possible)",
            "Do nothing",
        ),
        limit="Turns: {turns} at most. Repeating what was said: no.",
        first_turn="Conversation: begins now. Turn: yours.",
        your_turn="Turn: yours.",
        write="Task: a conversation between {names}.",
        each_line="Each turn: one line. Length: one or two short sentences.",
        write_now="Write the conversation. First turn: {first}. Order of turns: {names}.",
        about="Profile ({name}): {text}",
        lines="Put the conversation into lines, one for each turn.",
        play=(
            "Write what {name} says, line by line, and nothing of the others. Answer truthfully to "
            "what was just said, then ask or tell something on the way to the goal of {name}. No line "
            "is said twice. When the goal is settled, say goodbye."
        ),
        script=(
            "Let each line answer what was just said, on the way to the goal of the speaker. No line is said twice."
        ),
        length="A line holds one or two short spoken sentences.",
        leave="To part with a goodbye, begin the line with {start}",
        who="This turn is {name}'s, and you are {name}.",
        begin="It opens the conversation.",
        answer="Answer, with something on the way to your goal.",
        go_on="Say something new on the way to your goal.",
        settle="Say something new on the way to your goal; when it is settled, say goodbye with {start}.",
        end="The time has run out: say goodbye with {start}.",
        script_end=(
            "Fill {few} to {many} lines. New things are said in each line. At last somebody says goodbye with [leave]."
        ),
    ),
)

WORDINGS: tuple[Wording, ...] = (USUAL, *OTHERS)
