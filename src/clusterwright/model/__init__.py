"""What a cluster is: the types of the architecture, of jobs, readings, evidence, findings; text → architecture.

No formula, no rule and no I/O lives here. Sections are frozen pydantic models that know their own shape and units;
whether a design is good is the business of `review`.
"""
