"""URLs that hold a secret, of all kinds."""

SECRET = "hunter2-do-not-tell"
URLS = [
    f"https://user:{SECRET}@host/a.txt",
    f"https://user:p@{SECRET}@host/a.txt",
    f"https://host/a.txt?X-Amz-Signature={SECRET}",
    f"https://host/a.txt?x=1&sig={SECRET}&y=2",
    f"https://host/a.txt?token={SECRET}",
    f"https://host/a.txt?sv=2022&se=2030&SIG={SECRET}",
    f"s3://key:{SECRET}@bucket/a.txt",
    f"simplecache::ftp://user:{SECRET}@host/a.txt",
    f"s3://key:a/{SECRET}@bucket/a.txt",
    f"postgresql://user:{SECRET}@host:5432/runs",
    f"tcp://{SECRET}@host:8786",
    f"https://{SECRET}@host/a.txt",
    f"https://{SECRET}@raw.githubusercontent.host/owner/repository/main/a.txt",
    f"zip://a.txt::HTTPS://{SECRET}@host/a.zip",
    f"git+https://{SECRET}@host/owner/repository",
    f"https://raw.githubusercontent.host/owner/repository/main/a.txt?token={SECRET}",
    f"https://site.azurewebsites.host/api/text?code={SECRET}",
    f"https://host/a.txt?x=1&SAS={SECRET}",
    f"https://account.blob.core.windows.host/c/a.txt?sp=r&st=2026-01-01T00:00:00Z&sv=2024-11-04&sr=b&sig={SECRET}",
    "https://bucket.s3.amazonaws.host/a.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIA%2F20260101%2Fus"
    f"-east-1%2Fs3%2Faws4_request&X-Amz-Expires=3600&X-Amz-SignedHeaders=host&X-Amz-Signature={SECRET}",
    f"https://bucket.s3.amazonaws.host/a.txt?AWSAccessKeyId=AKIA&Expires=1&Signature={SECRET}",
    "https://storage.googleapis.host/bucket/a.txt?X-Goog-Algorithm=GOOG4-RSA-SHA256&X-Goog-Credential=me%40project"
    f"&X-Goog-Date=20260101T000000Z&X-Goog-Expires=900&X-Goog-SignedHeaders=host&X-Goog-Signature={SECRET}",
    f"https://storage.googleapis.host/bucket/a.txt?GoogleAccessId=me&Expires=1&Signature={SECRET}",
    f"https://d111.cloudfront.host/a.txt?Expires=1&Policy=abc&Key-Pair-Id={SECRET}",
    f"https://host/a.txt?alt=media&access_token={SECRET}",
    f"https://host/a.txt#access_token={SECRET}&token_type=bearer",
    f"https://host/a.txt?x=1#code={SECRET}",
    f"https://host/a.txt;token={SECRET}",
]
