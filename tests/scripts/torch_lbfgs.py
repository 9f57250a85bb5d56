import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(50, 100), torch.nn.Tanh(), torch.nn.Linear(100, 1)).double()
x, y = torch.randn(2000, 50, dtype=torch.float64), torch.randn(2000, 1, dtype=torch.float64)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.8, history_size=10)
for i in range(15):
    def closure():
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss
    optimizer.step(closure)
