"""Results of tensor operations without computing them: tensors that know only their metadata."""

from dynamo_capture.shapes.library import TrialLibrary
from dynamo_capture.shapes.spec_tensor import Inference, SpecTensor

__all__ = ["Inference", "SpecTensor", "TrialLibrary"]
