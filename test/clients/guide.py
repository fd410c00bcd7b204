"""Runs the examples of kurrentdbclient's guide, which its package contains, one after the other in one namespace.

Arguments: the address of an event store, and patterns of headings whose examples are left out.
Prints a line for each example: the outcome, its number and heading, and the error.
"""
import importlib.metadata
import os
import re
import signal
import sys

ADDRESS, *LEFT_OUT = sys.argv[1:]
EXAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)
HEADING = re.compile(r"^#+ (.*?)(?:<a .*)?$", re.MULTILINE)
SECONDS = 30

os.environ["KDB_URI"] = ADDRESS
metadata = importlib.metadata.metadata("kurrentdbclient")
guide = metadata.get("Description") or metadata.get_payload()


def hangs(*_):
    raise TimeoutError(f"no end after {SECONDS} seconds")


def main():
    signal.signal(signal.SIGALRM, hangs)
    namespace = {"__name__": "__main__"}
    for number, example in enumerate(EXAMPLE.finditer(guide), 1):
        before = re.sub(r"```.*?```", "", guide[: example.start()], flags=re.DOTALL)
        heading = HEADING.findall(before)[-1]
        if any(re.search(pattern, heading) for pattern in LEFT_OUT):
            continue
        problem = problem_of(example.group(1), namespace)
        outcome = "ok" if problem is None else "FAILED"
        print(outcome, f"{number}, {heading}", problem or "", sep="\t", flush=True)
    # Some examples leave threads.
    os._exit(0)


def problem_of(code, namespace):
    code = re.sub(r"(?:esdb|kurrentdb)(?:\+discover)?://[^\"'\s]*", ADDRESS, code)
    signal.alarm(SECONDS)
    try:
        exec(compile(code, "guide", "exec"), namespace)
        return None
    except BaseException as error:
        return re.sub(r"\s+", " ", f"{type(error).__name__} {error}"[:500])
    finally:
        signal.alarm(0)


main()
