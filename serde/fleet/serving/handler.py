"""The handler that an archive of TorchServe has: what answers requests, as text of Python."""

from __future__ import annotations

from typing import Final

__all__ = ["HANDLER", "handler_text"]

HANDLER: Final = "handler.py"


def handler_text(title: str) -> str:
    """Return the text of ``handler.py``, the same for every model but for its first line."""
    return f'"""Answers requests for {title}."""\n{_BODY}'


_BODY: Final = '''
import importlib.util
import io
import json
from pathlib import Path

import numpy as np
import torch


class Handler:
    """Loads model.py with its weights, and runs it on the inputs that config.json names.

    A request is JSON, {"input": [[...]]} by input or the numbers alone of a single one, or a file
    of NumPy (.npy of a single input, .npz by input). Its answer is JSON by output, and for scores
    of classes their five best labels.
    """

    def initialize(self, context):
        """Load the model; called once by each worker."""
        properties = context.system_properties
        folder = Path(properties["model_dir"])
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.inputs, self.outputs = config["inputs"], config["outputs"]
        names = folder / "index_to_name.json"
        self.labels = json.loads(names.read_text(encoding="utf-8")) if names.exists() else {}
        gpu = properties.get("gpu_id")
        on_gpu = torch.cuda.is_available() and gpu is not None
        self.device = torch.device(f"cuda:{gpu}" if on_gpu else "cpu")
        spec = importlib.util.spec_from_file_location("served_model", folder / "model.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.model = module.Model.from_pretrained(folder).to(self.device)

    def handle(self, data, context):
        """Return an answer for each request."""
        return [self.answer(index, request, context) for index, request in enumerate(data)]

    def answer(self, index, request, context):
        """Return the outputs for one request; for one that does not fit, why."""
        try:
            arguments = self.preprocess(request)
        except (KeyError, TypeError, ValueError) as error:
            context.set_response_status(400, str(error), index)
            return {"error": str(error)}
        with torch.inference_mode():
            found = self.model(*arguments)
        return self.postprocess(found if isinstance(found, (tuple, list)) else (found,))

    def preprocess(self, request):
        """Return the tensors for the arguments of Model.forward, in their order."""
        names = [each["name"] for each in self.inputs]
        given = request
        if not all(name in request for name in names):
            given = request.get("body", request.get("data"))
        if isinstance(given, (bytes, bytearray)):
            given = self.decode(bytes(given))
        if not isinstance(given, dict) and len(names) == 1:
            given = {names[0]: given}
        if not isinstance(given, dict) or not all(name in given for name in names):
            raise ValueError(f"expected the inputs {names} by name")
        return [self.tensor(each, given[each["name"]]) for each in self.inputs]

    def decode(self, body):
        """Return what the bytes of a request hold; pickled objects are not read."""
        if body[:2] == b"PK":
            return dict(np.load(io.BytesIO(body), allow_pickle=False))
        if body[:6] == b"\\x93NUMPY":
            return np.load(io.BytesIO(body), allow_pickle=False)
        return json.loads(body)

    def tensor(self, declared, value):
        """Return an input as a tensor, if its shape is the model's."""
        if isinstance(value, (bytes, bytearray)):
            value = self.decode(bytes(value))
        tensor = torch.as_tensor(np.asarray(value), dtype=getattr(torch, declared["dtype"]))
        shape = declared["shape"]
        fits = len(shape) == tensor.ndim and all(
            isinstance(wanted, str) or wanted == length
            for wanted, length in zip(shape, tensor.shape)
        )
        if not fits:
            raise ValueError(f"{declared['name']}: expected {shape}, found {list(tensor.shape)}")
        return tensor.to(self.device)

    def postprocess(self, found):
        """Return the outputs as lists by name, with labels where they are scores of classes."""
        answer, labels = {}, {}
        for declared, tensor in zip(self.outputs, found):
            tensor = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
            answer[declared["name"]] = tensor.cpu().tolist()
            if self.labels and tensor.ndim and tensor.shape[-1] == len(self.labels):
                labels[declared["name"]] = [
                    self.best(row) for row in tensor.reshape(-1, len(self.labels))
                ]
        return {**answer, "labels": labels} if labels else answer

    def best(self, scores):
        """Return the five best classes with their scores."""
        values, places = torch.topk(scores, min(5, len(scores)))
        pairs = zip(places.tolist(), values.tolist())
        return [[self.labels[str(place)], value] for place, value in pairs]
'''
