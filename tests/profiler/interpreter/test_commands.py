"""Command lines and configurations: argparse, click, typer, fire, absl, hydra, omegaconf, yacs; the environment."""

from __future__ import annotations

from typing import Any

import pytest

from oarlock_profiler.core.interpreter.values import Unknown

from .bench import run

ARGPARSE = """
import argparse
def boolean(text): return text.lower() in ('yes', 'true', '1')
class Pairs(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, dict(v.split('=') for v in values))
p = argparse.ArgumentParser(description='100%')
p.add_argument('--lr', '-l', type=float, default=0.1)
p.add_argument('--batch-size', type=int, default=32, choices=[8, 16, 32, 64])
p.add_argument('--sizes', nargs='+', type=int, default=[1])
p.add_argument('--amp', action='store_true')
p.add_argument('--no-cuda', action='store_false', dest='cuda')
p.add_argument('-v', action='count', default=0)
p.add_argument('--flag', type=boolean, default=False)
p.add_argument('--ema', action=argparse.BooleanOptionalAction, default=True)
p.add_argument('--opts', nargs='*', action=Pairs)
p.add_argument('--tag', action='append')
g = p.add_mutually_exclusive_group()
g.add_argument('--depth', type=int)
p.set_defaults(extra=9)
"""


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        ([], "lr", 0.1),
        (["--lr", "3e-4"], "lr", 3e-4),
        (["-l", "1"], "lr", 1.0),
        (["--batch", "16"], "batch_size", 16),
        (["--batch-size=64"], "batch_size", 64),
        (["--sizes", "2", "3"], "sizes", [2, 3]),
        (["--amp"], "amp", True),
        ([], "cuda", True),
        (["--no-cuda"], "cuda", False),
        (["-vv"], "v", 2),
        (["--flag", "YES"], "flag", True),
        (["--no-ema"], "ema", False),
        (["--opts", "a=1", "b=2"], "opts", {"a": "1", "b": "2"}),
        (["--tag", "x", "--tag", "y"], "tag", ["x", "y"]),
        (["--depth", "4"], "depth", 4),
        ([], "extra", 9),
    ],
)
def test_argparse(arguments: list[str], name: str, value: Any) -> None:
    ran = run(ARGPARSE + "args = p.parse_args()\nr = vars(args)", *arguments)
    assert ran.machine.internal_errors == []
    assert ran["r"][name] == value


def test_a_required_argument_that_is_missing_is_named_and_typed() -> None:
    ran = run(
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--depth', type=int, required=True)\np.add_argument('data')\na = p.parse_args()\nr = a.depth, a.data"
    )
    assert ran.gaps == [
        "argument --depth: it is required and was not given",
        "argument data: it is required and was not given",
    ]
    depth, data = ran["r"]
    assert isinstance(depth, Unknown)
    assert isinstance(data, Unknown)
    assert (depth.hint, data.hint) == ("int", "str")


def test_sub_parsers_and_known_arguments() -> None:
    source = (
        "import argparse\np = argparse.ArgumentParser()\ns = p.add_subparsers(dest='cmd')\nt = s.add_parser('train')\nt.add_argument('--epochs', type=int, default=3)\n"
        "t.set_defaults(func=lambda a: a.epochs * 2)\na, rest = p.parse_known_args()\nr = a.cmd, a.func(a), rest"
    )
    assert run(source, "train", "--epochs", "7", "--other", "x")["r"] == ("train", 14, ["--other", "x"])


def test_arguments_that_do_not_fit_are_noted_and_the_rest_is_read() -> None:
    ran = run(ARGPARSE + "r = p.parse_args().lr", "--lr", "0.5", "--batch-size", "7")
    assert ran["r"] == 0.5
    assert any("invalid choice" in gap for gap in ran.gaps)


OTHERS: dict[str, tuple[str, list[str], Any]] = {
    "click": ("import click\n@click.command()\n@click.option('--lr', default=0.1)\n@click.option('--amp/--no-amp', default=False)\n@click.option('-n', '--num', type=int, default=1)\n@click.argument('path')\ndef main(lr, amp, num, path):\n global r\n r = lr, amp, num, path\nif __name__ == '__main__': main()",
              ["data", "--lr", "0.3", "--amp", "-n", "4"], (0.3, True, 4, "data")),
    "click groups": ("import click\n@click.group()\ndef cli(): pass\n@cli.command()\n@click.option('--x', default=1)\ndef train_model(x):\n global r\n r = x\ncli()", ["train-model", "--x", "5"], 5),
    "typer": ("import typer\napp = typer.Typer()\n@app.command()\ndef main(path: str, lr: float = 0.1, amp: bool = False, n: int = typer.Option(3, '--num')):\n global r\n r = path, lr, amp, n\napp()", ["d", "--lr", "0.5", "--amp", "--num", "9"], ("d", 0.5, True, 9)),
    "fire function": ("import fire\ndef main(data, lr=0.1, *, depth=2):\n global r\n r = data, lr, depth\nfire.Fire(main)", ["--data=x", "--lr", "3e-4"], ("x", 3e-4, 2)),
    "fire class": ("import fire\nclass T:\n def __init__(self, w=1): self.w = w\n def train(self, lr=0.1):\n  global r\n  r = self.w, lr\nfire.Fire(T)", ["train", "--w=5", "--lr=0.2"], (5, 0.2)),
    "absl": ("from absl import app, flags\nFLAGS = flags.FLAGS\nflags.DEFINE_integer('bs', 32, 'h')\nflags.DEFINE_bool('amp', False, 'h')\nN = flags.DEFINE_string('name', 'n', 'h')\ndef main(_):\n global r\n r = FLAGS.bs, FLAGS.amp, N.value\napp.run(main)", ["--bs=8", "--amp"], (8, True, "n")),
    "hydra": ("import hydra\nfrom omegaconf import OmegaConf\nfrom hydra.utils import instantiate\nclass Net:\n def __init__(self, d, act='x'): self.d, self.act = d, act\n@hydra.main(version_base=None, config_path='conf', config_name='config')\ndef main(cfg):\n global r\n n = instantiate(cfg.net, act='relu')\n r = cfg.model.name, cfg.lr, cfg.opt.lr, cfg.steps, n.d, n.act, OmegaConf.to_container(cfg, resolve=True)['opt']\nif __name__ == '__main__': main()",
              ["lr=0.5", "model=big", "+steps=7"], ("b", 0.5, 0.5, 7, 8, "relu", {"lr": 0.5})),
    "omegaconf": ("from omegaconf import OmegaConf\nc = OmegaConf.merge(OmegaConf.load('conf/model/big.yaml'), OmegaConf.from_cli())\nr = c.name, c.dim, c.a.b", ["a.b=3", "dim=9"], ("b", 9, 3)),
    "yacs": ("from yacs.config import CfgNode as CN\nC = CN(); C.M = CN(); C.M.D = 3\nc = C.clone(); c.merge_from_list(['M.D', '9']); r = c.M.D, C.M.D", [], (9, 3)),
    "easydict": ("from easydict import EasyDict\ne = EasyDict({'a': {'b': 2}}); e.c = 3\nr = e.a.b, e['c'], 'c' in e", [], (2, 3, True)),
    "yaml and toml": ("import yaml, tomllib\nwith open('conf/config.yaml') as f: a = yaml.safe_load(f)\nr = a['lr'], tomllib.loads('x = 1')['x']", [], (0.1, 1)),
    "environment": ("import os\nr = os.environ['GIVEN'], os.environ.get('ABSENT', 'd'), int(os.environ.get('WORLD_SIZE', 1)), 'GIVEN' in os.environ, os.getenv('ABSENT')", [], ("v", "d", 1, True, None)),
    "sys.argv": ("import sys\nr = sys.argv", ["a", "b"], ["main.py", "a", "b"]),
}  # fmt: skip
FILES = {
    "conf/config.yaml": "defaults:\n  - model: small\n  - _self_\nlr: 0.1\nopt:\n  lr: ${lr}\nnet:\n  _target_: main.Net\n  d: ${model.dim}\n",
    "conf/model/small.yaml": "name: s\ndim: 4\n",
    "conf/model/big.yaml": "name: b\ndim: 8\n",
}


@pytest.mark.parametrize("name", OTHERS)
def test_others(name: str) -> None:
    source, arguments, expected = OTHERS[name]
    ran = run(source, *arguments, files=FILES, environment={"GIVEN": "v"})
    assert ran.machine.internal_errors == []
    assert ran["r"] == expected
