-- Runs once, while the cluster is made. Posthorn and Temporal each own their databases and reach no other.
-- A password that changes in .env later has to be changed here too: ALTER ROLE … PASSWORD.
\getenv posthorn_password POSTGRES_PASSWORD
\getenv temporal_password TEMPORAL_POSTGRES_PASSWORD

CREATE ROLE posthorn LOGIN PASSWORD :'posthorn_password';
CREATE ROLE temporal LOGIN PASSWORD :'temporal_password';

CREATE DATABASE posthorn OWNER posthorn;
CREATE DATABASE temporal OWNER temporal;
CREATE DATABASE temporal_visibility OWNER temporal;

REVOKE CONNECT ON DATABASE posthorn, temporal, temporal_visibility, postgres FROM PUBLIC;

-- From here on the administrator only comes in through the container's own socket:
-- docker compose exec --user postgres postgres psql
ALTER ROLE postgres PASSWORD NULL;
