"""Steps that compare the device with the CPU: bytes of logits, and texts."""

import filecmp
import json
import re
import threading

from record import FAILED, NOT_RUN, PASSED


def ids_for(run, model, count):
    """Returns a file of the first `count` ids of a checkpoint's own."""
    path = run.scratch / f"{model.parent.name}-{model.stem}-{count}.ids"
    if path.exists():
        return path
    if model.name == "deep.gguf":
        # Repeats with a change, so that some drafts hold and some do not.
        ids = [(i % 31 * 7 + i // 93) % 512 for i in range(count)]
    else:
        for tokens in (model.parent / model.stem / "tokens.txt",
                       model.parent / "tokens.txt",
                       run.pack / "tokens.txt"):
            if tokens.exists():
                break
        ids = tokens.read_text().split()[:count]
    # A rename, since several threads make the file at once.
    part = path.with_suffix(f".{threading.get_ident()}")
    part.write_text("\n".join(map(str, ids)) + "\n")
    part.rename(path)
    return path


def models(run):
    found = sorted(run.pack.glob("checkpoints/**/*.gguf"))
    # These are no models, or parts of one.
    skip = re.compile(r"tiny_vocab|-0000[2-9]-|/llama_bias-00001")
    found = [model for model in found if not skip.search(str(model))]
    real = run.pack / "model.gguf"
    return found + [real] if real.exists() else found


# ---- Logits ----


def logits_of(run, name, device, model, count, rows, *flags):
    """Returns a file with the logits of a checkpoint's first ids; None after a
    failure, which is a failed case."""
    out = run.scratch / re.sub(r"\W", "_", f"{name} {device} {rows}")
    done = run.call(run.tiercel, "eval", "-m", model, "--tokens",
                    ids_for(run, model, count), "--no-progress", "-ub", rows,
                    *flags, "--device", device, "-t", 2, "--logits", out)
    if done.code == 0:
        return out
    if run.left() > 0:
        run.case(name, FAILED, f"{device}: {done.words}")
    return None


def logits(run):
    """Compares logits of a prompt, and of rows one by one, with the CPU's."""
    # The executor takes long, and ctest's tests cover all models.
    jobs = [(model, compute, rows)
            for model in models(run)[::6 if run.is_simulated else 1]
            for compute in ("q8", "f32")
            # Single rows take the executor long.
            for rows in ((512,) if run.is_simulated else (1, 512))]

    def compare(job):
        model, compute, rows = job
        name = f"{model.parent.name}/{model.name} --compute {compute} -ub {rows}"
        if run.known(name):
            return
        outs = []
        for device in ("cpu", run.device):
            outs.append(logits_of(run, name, device, model,
                                  8 if run.is_simulated else 150, rows,
                                  "--compute", compute, "--deterministic"))
            if outs[-1] is None:
                return
        same = filecmp.cmp(*outs, shallow=False)
        run.case(name, PASSED if same else FAILED,
                 "" if same else differences(*outs))
        for out in outs:
            out.unlink(missing_ok=True)

    run.each(compare, jobs)
    return run.summary("times the CPU's bytes")


def floats_of(file):
    import array
    return array.array("f", file.read_bytes()[128:])


def prompts(run):
    """Compares logits of prompts by the matrix unit, which are no bytes of the
    CPU, with the CPU's; and with those of the prompt in other parts."""
    # With q8 products are the matrix unit's too, but not those of the logits,
    # whose activations have 8 bits.
    # Prompts of the real model take the executor longer than the step has.
    names = ["q4_k.gguf"] + ["model.gguf"] * (not run.is_simulated)
    jobs = [(model, *kind) for model in models(run) if model.name in names
            for kind in (("f16", "f32"), ("q8_0", "f32"), ("f16", "q8"))]

    def compare(job):
        model, kv, compute = job
        name = (f"{model.parent.name}/{model.name} KV {kv} --compute {compute}, "
                "not --deterministic")
        if run.known(name):
            return
        outs = []
        for device, compute_here, rows in (("cpu", "f32", 512),
                                           (run.device, compute, 512),
                                           (run.device, compute, 37)):
            outs.append(logits_of(run, name, device, model,
                                  40 if run.is_simulated else 150, rows,
                                  "--compute", compute_here, "-ctk", kv,
                                  "-ctv", kv))
            if outs[-1] is None:
                return
        why = ""
        expected, got = floats_of(outs[0]), floats_of(outs[1])
        greatest = max(map(abs, expected))
        off = max(abs(a - b) for a, b in zip(expected, got))
        # Numbers of 11 bits in each product.
        if len(got) != len(expected) or not off <= greatest / 64:
            why = f"off by {off:g} of {greatest:g}"
        elif off == 0:
            why = "the CPU's bytes: the matrix unit was not used"
        elif not filecmp.cmp(outs[1], outs[2], shallow=False):
            why = differences(outs[1], outs[2])
        run.case(name, FAILED if why else PASSED, why)
        for out in outs:
            out.unlink(missing_ok=True)

    run.each(compare, jobs)
    return run.summary("prompts by the matrix unit are near the CPU's")


def differences(expected, got):
    """Describes how many floats differ, and the first of them."""
    a, b = map(floats_of, (expected, got))
    if len(a) != len(b):
        return f"{len(b)} floats, need {len(a)}"
    other = [i for i in range(len(a)) if a[i] != b[i]]
    if not other:
        return "the same values, other bytes"
    most = max(abs(a[i] - b[i]) for i in other)
    return (f"{len(other)} of {len(a)} floats differ, by {most:g} at most; "
            f"number {other[0]}: got {b[other[0]]!r}, need {a[other[0]]!r}")


# ---- Texts ----

SFI = "--policy sfi --window 32 --set trigger=fixed,interval=6,gap=1"
SADAS = "--policy sadas --window 64 --set think=on,most=12"
TRIFORCE = "--policy triforce --budget 64 --sink 8 --window 16"
POLICIES = (
    "--policy full",
    "--policy full --draft ngram",
    f"{TRIFORCE} --chunk 8",
    f"{TRIFORCE} --chunk 1",
    f"{SFI} --budget 60 --sink 2",
    f"{SFI} --budget 60 --sink 2 --plain",
    f"{SFI} --budget 64 --sink 8 --chunk 8 --plain",
    SADAS,
    f"{SADAS} --plain",
    "--policy speed --set cut=1",
    "--policy speed --set cut=1 --plain",
)


def least_memory(run, *flags):
    """Returns the least memory of a session: its KV then crosses the link."""
    done = run.call(run.tiercel, "plan", *flags, "--device-memory", "1MB",
                    "--json", "--no-progress")
    found = re.search(r'"min_device_bytes":(\d+)', done.out)
    if found is None:
        raise RuntimeError(f"plan says no least memory: {done.words}")
    return f"{int(found[1]) // 1000 + 1}kB"


def document(run, *flags):
    """Returns the document of `generate`, or None and words on its failure."""
    done = run.call(run.tiercel, "generate", *flags, "--json", "--no-progress")
    if done.code != 0:
        return None, done.words
    return json.loads(done.out), ""


def texts(run):
    """Compares the tokens of every policy with the CPU's, with KV in the
    device's memory and behind its link."""
    prompt, count = (150, 8) if run.is_simulated else (700, 40)
    jobs = [(run.pack / "checkpoints" / "deep.gguf", policy)
            # The executor takes seconds for each policy.
            for policy in (POLICIES[::6] if run.is_simulated else POLICIES)]
    if (run.pack / "model.gguf").exists() and not run.is_simulated:
        jobs += [(run.pack / "model.gguf", policy) for policy in POLICIES]

    def compare(job):
        model, policy = job
        # In this context a session takes less behind the link than in place.
        context = 8192 if model.name == "model.gguf" else 1024
        # Threads do not change a text, but a session's memory. Several runs go
        # on at a time.
        session = ["-m", model, "-c", context, "-t", 2, *policy.split()]
        text = [*session, "--deterministic", "--tokens",
                ids_for(run, model, prompt), "-n", count, "--ignore-eos",
                "--temp", 0.8, "--seed", 3]
        if "--plain" not in policy and policy != "--policy full":
            text += ["--verify", "coupled"]
        names = [f"{model.name} {policy} {where}"
                 for where in ("on the device", "behind the link")]
        if all(map(run.known, names)):
            return
        expected, why = document(run, *text, "--device", "cpu")
        if expected is None:
            if run.left() > 0:
                run.case(names[0], FAILED, f"cpu: {why}")
            return
        least = least_memory(run, *session, "--device", run.device)
        for name, memory in zip(names, ("1000GiB", least)):
            got, why = document(run, *text, "--device", run.device,
                                "--device-memory", memory)
            if got is None:
                if run.left() > 0:
                    run.case(name, FAILED, why)
                continue
            tokens = [one["output"][0]["tokens"] for one in (expected, got)]
            if tokens[0] != tokens[1]:
                why = f"got {tokens[1]}, need {tokens[0]}"
            elif (memory == least and got["ledger"]["h2d_bytes"] == 0
                  # A short text fits the window and the pages beside it.
                  and not (run.is_simulated and "sadas" in policy)):
                why = f"nothing came over the link in {least}"
            run.case(name, FAILED if why else PASSED, why)

    run.each(compare, jobs)
    return run.summary("texts are the CPU's")


# ---- Ranks ----


def ranks(run):
    """Compares two GPUs' tokens with the CPU's, by copies and by NCCL."""
    model = run.pack / "checkpoints" / "deep.gguf"
    over = ["-m", model, "--device", run.device, "--tensor-parallel", 2]
    ids = ids_for(run, model, 20 if run.is_simulated else 150)
    policies = ["--policy full", f"{TRIFORCE} --chunk 8 --verify coupled"]
    for policy in policies[:1] if run.is_simulated else policies:
        text = ["-c", 1024, *policy.split(), "--deterministic", "--tokens", ids,
                "-n", 8, "--ignore-eos", "--temp", 0.8, "--seed", 3]
        expected, why = document(run, "-m", model, "--device", "cpu", *text)
        if expected is None:
            run.case(policy, FAILED, f"cpu: {why}")
            continue
        for way in ("0",) if run.is_simulated else ("0", "1"):
            name = f"{policy}, TIERCEL_NCCL={way}"
            done = run.call(run.tiercel, "generate", *over, *text, "--json",
                            "--no-progress", env={"TIERCEL_NCCL": way})
            if "need a GPU each" in done.out + done.err:
                return NOT_RUN, "there is one GPU"
            if way == "1" and "no_library" in done.out:
                run.case(name, NOT_RUN, done.words)
                continue
            same = done.code == 0 and (
                json.loads(done.out)["output"][0]["tokens"]
                == expected["output"][0]["tokens"])
            run.case(name, PASSED if same else FAILED,
                     "" if same else done.words)
    return run.summary("texts over two GPUs are the CPU's")
