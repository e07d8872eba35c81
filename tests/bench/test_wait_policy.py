"""The policies of waiting threads: each has its own process with the variable, and the table has its times."""

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))

from bench import wait_policy


def test_table(monkeypatch, capsys):
    times = {None: 0.206, "active": 0.3, "passive": 0.2}

    def asked(folder, options, do, **fields):
        if do == "reference":
            return {"exact": [1.0], "allowed": {"float32": [0.1]}}
        if fields["model"] == "jax_vgg":
            return {"wrong": "jax: the loss of step 0 is 7"}
        policy = os.environ.get("OMP_WAIT_POLICY")
        return {"seconds": {"jax": [0.4], "convgrad_cy": [times[policy]]}}

    monkeypatch.setattr(wait_policy.training, "asked", asked)
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    assert wait_policy.main(["--models", "jax_unet,jax_vgg"]) == 1
    assert os.environ["OMP_WAIT_POLICY"] == "active"
    header, unet, vgg = capsys.readouterr().out.splitlines()
    assert header.split()[3:6] == ["unset", "active", "passive"]
    assert " ".join(unet.split()) == "U-Net 206.0 (XLA 400.0) 300.0 (XLA 400.0) 200.0 (XLA 400.0) 1.030"
    assert vgg.endswith("wrong: jax: the loss of step 0 is 7")
