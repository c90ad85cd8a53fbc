"""BO when gradients are available? (botorch#1626) A whole loop: model with gradients, acquisition, optimize_acqf."""

import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.optim import optimize_acqf

import eign

torch.manual_seed(0)
cube = torch.tensor([[0.0] * 3, [1.0] * 3], dtype=torch.float64)


def simulate(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Value and gradient to be maximised, here by autograd; any code that returns both will do."""
    x = x.clone().requires_grad_()
    value = (torch.cos(7 * (x - 0.62)) - 4 * (x - 0.62) ** 2).sum(dim=-1, keepdim=True)
    (gradient,) = torch.autograd.grad(value.sum(), x)
    return value.detach(), gradient


X = torch.rand(4, 3, dtype=torch.float64)
Y, G = simulate(X)
for _ in range(12):
    model = eign.models.fit(eign.models.JointGradientGP(X, Y, G))
    acquisition = LogExpectedImprovement(model, best_f=Y.max())
    x, _ = optimize_acqf(acquisition, bounds=cube, q=1, num_restarts=4, raw_samples=64)
    y, g = simulate(x)
    X, Y, G = torch.cat([X, x]), torch.cat([Y, y]), torch.cat([G, g])

print(f"best of {len(Y)}: {Y.max():.5f} at {X[Y.argmax()].tolist()}; the optimum is 3 at 0.62")
