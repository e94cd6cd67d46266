"""What SmolLM2-135M-Instruct (Q4_1) must answer; printed by reference.py, which shares no code with tiny."""
PROMPT = "The capital of France is"
PROMPT_IDS = [504, 3575, 282, 4649, 314]
TOP_FIVE = {7042: 17.3713, 260: 14.8886, 4528: 13.2450, 2250: 13.0095, 1315: 12.9515}
GREEDY_IDS = [7042, 30, 198, 198, 504, 2988, 314, 42, 216, 34, 32, 33, 40, 29, 32, 33, 29, 34, 34, 216, 33,
              34, 42, 33, 34, 42, 37, 35, 30, 2]
GREEDY_TEXT = " Paris.\n\nThe answer is: 2018-01-22 12:12:53."
CHAT_PROMPT = "What is gravity? Answer in one sentence."
CHAT_ANSWER = ("Gravity is a fundamental concept in physics that describes the force of gravity, which is a "
               "result of the curvature of spacetime caused by the presence of mass.")
