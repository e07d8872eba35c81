"""A network with its data and optimizer. One call is one training step with the kernels that are enabled."""

import torch
from torch.nn import functional

from bench import models

LAST = {2: torch.channels_last, 3: torch.channels_last_3d}
SEED = 0


class Steps:
    """``step()`` is forward, loss, backward and SGD, and returns the loss. ``losses`` begins at the first weights."""

    def __init__(self, model, dtype="float32", layout="NCX", mode="eager"):
        torch.manual_seed(SEED)
        self.model = model
        self.exact = dtype == "float64"
        self.autocast = dtype == "bfloat16"
        self.format = LAST[len(model.inputs) - 1] if layout == "NXC" else torch.contiguous_format
        self.network = self.placed(models.build(model))
        self.x = self.drawn(model.inputs)
        self.prepare()
        self.first = {name: value.clone() for name, value in self.network.state_dict().items()}
        if mode == "compile":
            for network in self.compiled():
                network.compile()

    def placed(self, thing):
        thing = thing.double() if self.exact else thing
        # Weights of one axis and vectors have no such format and stay as they are.
        return thing.to(memory_format=self.format)

    def drawn(self, shape):
        """A batch of random normals. Zeros would make convolutions cheaper than they are."""
        return self.placed(torch.randn(self.model.batch, *shape))

    def optimizer(self, network):
        return torch.optim.SGD(network.parameters(), lr=self.model.rate)

    def restart(self):
        self.network.load_state_dict(self.first)

    def losses(self, count):
        """Losses of the first steps."""
        self.restart()
        return [self.step() for _ in range(count)]


class Supervised(Steps):
    """Cross entropy with random classes, one for each example or for each position."""

    def prepare(self):
        axes = self.model.inputs[1:] if self.model.dense else ()
        self.targets = torch.randint(self.model.classes, (self.model.batch, *axes))
        self.sgd = self.optimizer(self.network)

    def compiled(self):
        return [self.network]

    def step(self):
        self.sgd.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
            outputs = self.network(self.x)
        loss = functional.cross_entropy(outputs if self.exact else outputs.float(), self.targets)
        loss.backward()
        self.sgd.step()
        return loss.item()


class Adversarial(Steps):
    """A step of the discriminator on images and on generated images, then a step of the generator."""

    def prepare(self):
        from bench.models.dcgan import CODE

        self.code = self.drawn((CODE, 1, 1))
        self.generator, self.discriminator = self.network.generator, self.network.discriminator
        self.sgd = [self.optimizer(network) for network in self.compiled()]

    def compiled(self):
        return [self.generator, self.discriminator]

    def loss(self, images, real):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
            logits = self.discriminator(images)
        logits = logits if self.exact else logits.float()
        return functional.binary_cross_entropy_with_logits(logits, torch.full_like(logits, float(real)))

    def step(self):
        self.network.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
            made = self.generator(self.code)
        judged = self.loss(self.x, True) + self.loss(made.detach(), False)
        judged.backward()
        self.sgd[1].step()
        self.network.zero_grad()
        fooled = self.loss(made, True)
        fooled.backward()
        self.sgd[0].step()
        return (judged + fooled).item()


def steps_of(model, **how):
    return (Adversarial if model.classes is None else Supervised)(model, **how)
