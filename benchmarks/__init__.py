"""Speed, memory and accuracy of partsketch, side by side with what else does the same job.

Three steps that can be run apart: run (measure, save JSON), table (JSON to the tables of README.md).
"""
