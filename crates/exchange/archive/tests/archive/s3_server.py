"""A server that speaks S3, on loopback, for the test beside this file: moto, which checks who asks for what.

Prints one line of JSON (where it is, and a key that may use the bucket `pares`), and ends when its standard input does.
"""

import json
import sys

import boto3
from moto import settings
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
endpoint = f"http://{host}:{port}"


def client(service: str):
    return boto3.client(
        service, endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x"
    )


client("s3").create_bucket(Bucket="pares")
iam = client("iam")
iam.create_user(UserName="pares")
policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
iam.put_user_policy(UserName="pares", PolicyName="all", PolicyDocument=json.dumps(policy))
key = iam.create_access_key(UserName="pares")["AccessKey"]
# From now on who asks must show a key, and sign with its secret.
settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
print(json.dumps([endpoint, key["AccessKeyId"], key["SecretAccessKey"]]), flush=True)
sys.stdin.read()
