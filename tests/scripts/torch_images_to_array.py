"""Every picture is read into one array; scikit-learn splits it; only the number of pictures is not in the script."""

import os

import cv2
import numpy as np
import torch
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

pictures, labels = [], []
for label, name in enumerate(["cat", "dog", "owl"]):
    for file in os.listdir(os.path.join("data", name)):
        pictures.append(cv2.resize(cv2.imread(os.path.join("data", name, file)), (48, 48)))
        labels.append(label)
x = np.array(pictures, dtype=np.float32) / 255.0
y = np.array(labels)
x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.2)

data = TensorDataset(torch.from_numpy(x_train).permute(0, 3, 1, 2), torch.tensor(y_train, dtype=torch.long))
loader = DataLoader(data, batch_size=16, shuffle=True)
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 46 * 46, 3))
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(6):
    for picture, label in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(picture), label).backward()
        optimizer.step()
