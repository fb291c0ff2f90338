"""The first question, without a file: does a model fit these GPUs, how many, in which layout, for how much.

Parsed wants and a catalogue in, answers with bands out; here live no searches (`plan.searching`), no text layout, no
file, no day's date that is not an argument.
"""
