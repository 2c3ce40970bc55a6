"""Forms made from JSON schemas: which kind of field a schema asks for, and values as text and back.

Pure. The review screen (`client.review.schema_form`), questions on a terminal (`client.answers.form`) and the web page
(`client.web.schema_form`) draw them. Imports plans only.
"""
