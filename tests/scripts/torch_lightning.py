import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, random_split
from torchvision import transforms
from torchvision.datasets import MNIST


class LitAutoEncoder(pl.LightningModule):
    def __init__(self, hidden=64, latent=3, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = nn.Sequential(nn.Linear(28 * 28, self.hparams.hidden), nn.ReLU(), nn.Linear(hidden, latent))
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, 28 * 28))

    def forward(self, x):
        return self.encoder(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        x = x.view(x.size(0), -1)
        loss = F.mse_loss(self.decoder(self.encoder(x)), x)
        self.log('train_loss', loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, _ = batch
        x = x.view(x.size(0), -1)
        self.log('val_loss', F.mse_loss(self.decoder(self(x)), x))

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        return {'optimizer': opt, 'lr_scheduler': torch.optim.lr_scheduler.StepLR(opt, 5)}


class Data(pl.LightningDataModule):
    def __init__(self, batch_size=200):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        full = MNIST('.', train=True, download=True, transform=transforms.ToTensor())
        self.train, self.val = random_split(full, [55000, 5000])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=self.batch_size)


trainer = pl.Trainer(accelerator='gpu', devices=1, max_epochs=10, gradient_clip_val=0.5)
trainer.fit(LitAutoEncoder(), datamodule=Data())
