"""An MCP server of 2025-11-25 that runs calls as tasks.

python3 older_task_server.py DIRECTORY
"""
import json, os, sys

directory = sys.argv[1]
NOW = "2026-07-28T10:00:00Z"
RELATED = "io.modelcontextprotocol/related-task"
# The tasks, and the requests for their results, by the ids of the tasks; what is asked, by the ids of the questions.
tasks, waiting, asked = {}, {}, {}


def note(text):
    with open(os.path.join(directory, "heard"), "a") as heard:
        heard.write(text + "\n")


def say(message):
    print(json.dumps({"jsonrpc": "2.0"} | message), flush=True)


def refuse(id, code, message):
    say({"id": id, "error": {"code": code, "message": message}})


def state(task, step):
    members = {"taskId": task, "createdAt": NOW, "lastUpdatedAt": NOW, "ttl": None, "pollInterval": 100}
    known = ("status", "statusMessage", "ttl", "pollInterval")
    return members | {name: step[name] for name in known if name in step}


def end(task, step):
    """Answers the requests for the result of a task that is over."""
    meta = {"_meta": {RELATED: {"taskId": task}}}
    for id in waiting.pop(task, []):
        say({"id": id} | ({"error": step["error"]} if "error" in step else {"result": step["result"] | meta}))


def ask(task, step):
    for name, question in step["inputRequests"].items():
        asked[name] = task
        params = question.get("params", {}) | {"_meta": {RELATED: {"taskId": task}}}
        say({"id": name, "method": question["method"], "params": params})


def call(id, params):
    name, arguments = params["name"], params.get("arguments", {})
    note(name)
    if name == "hang":
        return
    if name == "task":
        if "task" not in params:
            return refuse(id, -32601, "only as a task")
        note(f"ttl {params['task']['ttl']}")
        task = arguments.get("id", f"task-{len(tasks)}")
        tasks[task] = arguments["steps"]
        first = {"status": "working"} | arguments.get("begun", {})
        return say({"id": id, "result": {"task": state(task, first)}})
    say({"id": id, "result": {"content": [], "structuredContent": {"task": "task" in params}}})


def of_task(method, id, task):
    steps = tasks[task]
    note(method)
    step = steps[0]
    if method == "tasks/cancel":
        return say({"id": id, "result": state(task, {"status": "cancelled"})})
    if method == "tasks/result":
        waiting.setdefault(task, []).append(id)
        if step["status"] == "input_required":
            ask(task, step)
    elif step.get("die"):
        os._exit(1)
    elif step.get("silent"):
        return
    else:
        say({"id": id, "result": state(task, step)})
        if len(steps) > 1 and step["status"] != "input_required":
            steps.pop(0)
    if step["status"] in ("completed", "failed"):
        end(task, step)


for line in sys.stdin:
    message = json.loads(line)
    method, id, params = message.get("method"), message.get("id"), message.get("params", {})
    if method is None:
        note("answers " + json.dumps({id: message.get("result")}, sort_keys=True))
        tasks[asked.pop(id)].pop(0)
    elif method == "initialize":
        tasks_of = {"cancel": {}, "requests": {"tools": {"call": {}}}}
        say({"id": id, "result": {"protocolVersion": "2025-11-25", "serverInfo": {"name": "fake", "version": "1"},
                                  "capabilities": {"tools": {}, "tasks": tasks_of}}})
    elif method == "tools/list":
        support = {"task": "required", "maybe": "optional"}
        say({"id": id, "result": {"tools": [
            {"name": name, "inputSchema": {"type": "object"},
             "execution": {"taskSupport": support.get(name, "forbidden")}}
            for name in ("task", "maybe", "echo", "hang")]}})
    elif method == "tools/call":
        call(id, params)
    elif method.startswith("tasks/"):
        of_task(method, id, params["taskId"])
    elif id is not None:
        refuse(id, -32601, "unknown")
