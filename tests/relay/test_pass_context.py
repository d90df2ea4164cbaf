"""Passes of users, the contexts in which they run, and what watches them."""

from __future__ import annotations

import threading

import pytest

import serde.relay as relay
from serde.errors import RelayError
from serde.relay import transform
from serde.relay.transform import PassContext, instrument


def module() -> relay.IRModule:
    x = relay.var("x", shape=(2,))
    return relay.IRModule({"main": relay.Function([x], relay.exp(x))})


class Other(relay.MixedModeMutator):
    """Replaces one operator by another."""

    def __init__(self, old: str, new: str) -> None:
        super().__init__()
        self.old, self.new = old, new

    def rewrite_call(self, pre, post):
        return getattr(relay, self.new)(*post.args) if pre.op.name == self.old else post


def swap(old: str, new: str, level: int = 0, required=()):
    @transform.function_pass(opt_level=level, name=f"{old}_to_{new}", required=list(required))
    def run(function, mod, ctx):
        return Other(old, new).visit(function)

    return run


def body(mod: relay.IRModule) -> str:
    return mod["main"].body.op.name


def test_a_function_becomes_a_pass_over_modules():
    seen = []

    @transform.module_pass(opt_level=2)
    def add_one(mod, ctx):
        seen.append(ctx.opt_level)
        new = relay.IRModule({"extra": mod["main"]})
        new.update(mod)
        return new

    assert isinstance(add_one, transform.ModulePass)
    assert (add_one.info.name, add_one.info.opt_level) == ("add_one", 2)
    with PassContext(opt_level=4):
        assert "extra" in add_one(module())
    assert seen == [4]


def test_a_class_becomes_a_class_of_passes():
    @transform.module_pass(opt_level=1, name="named")
    class Rename:
        """Its own words."""

        def __init__(self, name, *, twice=False):
            self.label = name * (2 if twice else 1)

        def transform_module(self, mod, ctx):
            return relay.IRModule({self.label: mod["main"]})

    assert Rename.__doc__ == "Its own words."
    made = Rename("f", twice=True)
    assert isinstance(made, transform.ModulePass)
    assert made.label == "ff"
    assert made.info == transform.PassInfo(1, "named")
    assert "ff" in made(module())
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        _ = made.other


def test_a_pass_over_functions_infers_types_and_leaves_those_of_other_compilers():
    mod = module()
    mod["outside"] = mod["main"].with_attr("Compiler", "chip")
    mod["as_is"] = mod["main"].with_attr("SkipOptimization", 1)
    found = swap("exp", "tanh")(mod)
    assert [found[name].body.op.name for name in ("main", "outside", "as_is")] == [
        "tanh", "exp", "exp",
    ]  # fmt: skip
    assert found.checked
    assert isinstance(swap("exp", "tanh"), transform.FunctionPass)


def test_a_class_becomes_a_pass_over_functions():
    @transform.function_pass(opt_level=1)
    class To:
        def __init__(self, new):
            self.new = new

        def transform_function(self, function, mod, ctx):
            return Other("exp", self.new).visit(function)

    assert To("sqrt").info.name == "To"
    assert body(To("sqrt")(module())) == "sqrt"


@pytest.mark.parametrize("decorate", [transform.module_pass, transform.function_pass])
def test_what_makes_no_pass_is_refused(decorate):
    with pytest.raises(ValueError, match="opt_level"):
        decorate(lambda mod, ctx: mod)
    with pytest.raises(TypeError, match="expected a function or a class"):
        decorate(3, opt_level=1)
    with pytest.raises(TypeError, match="required must be a list"):
        decorate(opt_level=1, required="InferType")


def test_what_a_pass_returns_is_checked():
    with pytest.raises(RelayError, match="bad: expected a module, found None"):
        transform.module_pass(lambda mod, ctx: None, opt_level=0, name="bad")(module())
    with pytest.raises(RelayError, match="bad: expected a function, found 1"):
        transform.function_pass(lambda function, mod, ctx: 1, opt_level=0, name="bad")(module())


@pytest.mark.parametrize(
    ("level", "options", "expected"),
    [
        (0, {}, "tanh"),
        (2, {}, "tanh"),
        (3, {}, "exp"),
        (3, {"opt_level": 3}, "tanh"),
        (3, {"required_pass": ["exp_to_tanh"]}, "tanh"),
        (0, {"disabled_pass": ["exp_to_tanh"]}, "exp"),
        (0, {"disabled_pass": {"exp_to_tanh"}, "required_pass": ("exp_to_tanh",)}, "exp"),
        (1, {"opt_level": 0}, "exp"),
    ],
)
def test_a_sequence_runs_what_the_context_enables(level, options, expected):
    with PassContext(**options):
        assert body(transform.Sequential([swap("exp", "tanh", level)])(module())) == expected


def test_a_single_pass_runs_at_every_level():
    with PassContext(opt_level=0, disabled_pass=["exp_to_tanh"]):
        assert body(swap("exp", "tanh", 4)(module())) == "tanh"


def test_conversions_ask_no_context():
    with PassContext(opt_level=0):
        mod, changed = transform.Sequential([swap("exp", "tanh", 3)]).run(module())
    assert changed
    assert body(mod) == "tanh"


def test_a_sequence_runs_what_its_passes_require():
    watch = Watch()
    with PassContext(instruments=[watch]):
        transform.Sequential([swap("exp", "tanh", 0, ["InferType"])], name="all")(module())
    assert watch.names == ["all", "InferType", "exp_to_tanh", "InferType"]
    with pytest.raises(RelayError, match="no pass is called Nothing"):
        transform.Sequential([swap("exp", "tanh", 0, ["Nothing"])])(module())


def test_sequences_contain_sequences():
    inner = transform.Sequential([swap("exp", "tanh")], opt_level=3, name="inner")
    outer = transform.Sequential([inner, swap("exp", "sqrt")])
    assert body(outer(module())) == "sqrt"
    with PassContext(opt_level=3):
        assert body(outer(module())) == "tanh"
    assert transform.Sequential().info == transform.PassInfo(0, "sequential", ())
    assert transform.Sequential()(mod := module()) is mod


@pytest.mark.parametrize("given", ["abc", 3])
def test_lists_are_lists(given):
    with pytest.raises(TypeError, match="passes must be a list"):
        transform.Sequential(given)
    with pytest.raises(TypeError, match="required_pass must be a list"):
        PassContext(required_pass=given)
    with pytest.raises(TypeError, match="disabled_pass must be a list"):
        PassContext(disabled_pass=given)


def test_contexts_nest_and_belong_to_a_thread():
    assert PassContext.current().opt_level == 2
    found = []
    with PassContext(opt_level=3, config={"a.b": 1}) as outer:
        with PassContext(opt_level=1):
            assert PassContext.current().opt_level == 1
            thread = threading.Thread(target=lambda: found.append(PassContext.current().opt_level))
            thread.start()
            thread.join()
        assert PassContext.current() is outer
        assert PassContext.current().config["a.b"] == 1
    assert found == [2]
    assert PassContext.current().opt_level == 2


class Watch(instrument.PassInstrument):
    """Notes what it is told."""

    def __init__(self, refuse: str = "") -> None:
        self.names: list[str] = []
        self.events: list[str] = []
        self.refuse = refuse

    def enter_pass_ctx(self) -> None:
        self.events.append("enter")

    def exit_pass_ctx(self) -> None:
        self.events.append("exit")

    def should_run(self, mod, info):
        return info.name != self.refuse

    def run_before_pass(self, mod, info):
        self.names.append(info.name)
        self.events.append(f"before {body(mod)}")

    def run_after_pass(self, mod, info):
        self.events.append(f"after {body(mod)}")


def test_instruments_see_modules_before_and_behind_a_pass():
    watch = Watch()
    with PassContext(instruments=[watch]):
        swap("exp", "tanh")(module())
    # Types are inferred behind a pass of a user.
    assert watch.names == ["exp_to_tanh", "InferType"]
    expected = ["enter", "before exp", "before tanh", "after tanh", "after tanh", "exit"]
    assert watch.events == expected


@pytest.mark.parametrize(
    ("required", "expected"), [([], "exp"), (["exp_to_tanh"], "tanh")], ids=["free", "required"]
)
def test_an_instrument_keeps_passes_from_running(required, expected):
    with PassContext(instruments=[Watch("exp_to_tanh")], required_pass=required):
        assert body(swap("exp", "tanh")(module())) == expected


def test_instruments_are_replaced():
    first, second = Watch(), Watch()
    with PassContext(instruments=[first]) as context:
        context.override_instruments([second])
        swap("exp", "tanh")(module())
    assert first.events == ["enter", "exit"]
    assert second.names[0] == "exp_to_tanh"


def test_an_instrument_that_fails_to_begin_ends_all():
    class Bad(instrument.PassInstrument):
        def enter_pass_ctx(self):
            raise RuntimeError("no")

    context = PassContext(instruments=[Watch(), Bad()])
    with pytest.raises(RuntimeError, match="no"), context:
        pass
    assert context.instruments == ()
    assert PassContext.current() is not context


def test_a_class_with_some_methods_becomes_an_instrument():
    @instrument.pass_instrument
    class Names:
        def __init__(self):
            self.names = []

        def run_after_pass(self, mod, info):
            self.names.append(info.name)

    names = Names()
    with PassContext(instruments=[names]):
        transform.InferType()(module())
    assert names.names == ["InferType"]
    assert isinstance(names, instrument.PassInstrument)
    with pytest.raises(TypeError, match="expected a class"):
        instrument.pass_instrument(3)


def test_times_nest_as_passes_do():
    timing = instrument.PassTimingInstrument()
    with PassContext(instruments=[timing]):
        transform.Sequential([transform.InferType(), transform.EvaluateConstants()])(module())
        text = timing.render()
    lines = [line.split(":")[0] for line in text.splitlines()]
    assert lines == ["sequential", "\tInferType", "\tEvaluateConstants"]
    assert "(100.00%; 100.00%)" in text.splitlines()[0]
    assert timing.render() == ""


@pytest.fixture
def outside():
    """Yield the context of no ``with``, and leave it as it was."""
    context = PassContext.current()
    yield context
    context.override_instruments(None)


def test_passes_are_timed_outside_contexts(outside):
    # As TVM's test_pass_timing_instrument does it.
    timing = instrument.PassTimingInstrument()
    PassContext.current().override_instruments([timing])
    transform.InferType()(transform.EvaluateConstants()(module()))
    assert [line.split(":")[0] for line in timing.render().splitlines()] == [
        "EvaluateConstants",
        "InferType",
    ]
    PassContext.current().override_instruments(None)
    transform.InferType()(module())
    assert timing.render() == ""


def test_the_context_of_no_with_is_one_of_each_thread(outside):
    watch = Watch()
    outside.override_instruments([watch])
    assert PassContext.current() is outside
    with PassContext():
        transform.InferType()(module())
    thread = threading.Thread(target=lambda: transform.InferType()(module()))
    thread.start()
    thread.join()
    assert watch.events == ["enter"]
    transform.InferType()(module())
    assert watch.names == ["InferType"]
    outside.override_instruments([])
    assert watch.events == ["enter", "before exp", "after exp", "exit"]


def test_an_instrument_that_fails_to_begin_outside_contexts_ends_all(outside):
    class Bad(instrument.PassInstrument):
        def enter_pass_ctx(self):
            raise RuntimeError("no")

    first, last = Watch(), Watch()
    with pytest.raises(RuntimeError, match="no"):
        outside.override_instruments([first, Bad(), last])
    # As TVM: what had begun ends, what comes behind is told nothing.
    assert first.events == ["enter", "exit"]
    assert last.events == []
    assert not PassContext.current().instruments


def test_an_instrument_that_fails_to_end_is_the_last_that_is_told():
    class Bad(Watch):
        def exit_pass_ctx(self):
            super().exit_pass_ctx()
            raise RuntimeError("no")

    watches = [Watch(), Bad(), Watch()]
    context = PassContext(instruments=watches)
    with pytest.raises(RuntimeError, match="no"), context:
        pass
    assert [watch.events for watch in watches] == [["enter", "exit"], ["enter", "exit"], ["enter"]]
    assert not context.instruments


def test_every_instrument_is_asked_whether_a_pass_runs():
    class Asked(Watch):
        def should_run(self, mod, info):
            self.events.append(f"asked {info.name}")
            return super().should_run(mod, info)

    watches = [Asked("InferType"), Asked()]
    with PassContext(instruments=watches):
        transform.InferType()(module())
    assert [watch.events for watch in watches] == [["enter", "asked InferType", "exit"]] * 2


def test_modules_are_printed(capsys):
    with PassContext(instruments=[instrument.PrintBeforeAll(), instrument.PrintAfterAll()]):
        transform.InferType()(module())
    out = capsys.readouterr().out
    assert "Before InferType:" in out
    assert "After InferType:" in out
    assert "exp(%x)" in out
