"""A random forest over a table."""

import joblib
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import classification_report
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

table = pd.read_csv("data/churn.csv")
x = StandardScaler().fit_transform(table.drop(columns=["churned"]))
x_train, x_test, y_train, y_test = train_test_split(x, table["churned"], test_size=0.2, random_state=0)

model = RandomForestClassifier(n_estimators=400, n_jobs=-1)
model.fit(x_train, y_train)
print(classification_report(y_test, model.predict(x_test)))
joblib.dump(model, "model.joblib")
