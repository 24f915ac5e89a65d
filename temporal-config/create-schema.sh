#!/bin/sh
# Creates the tables of Temporal or brings them to the version of this image. Harmless to repeat.
# Connection: SQL_PLUGIN, SQL_HOST, SQL_PORT, SQL_USER and SQL_PASSWORD, which temporal-sql-tool reads itself.
set -eu

create_schema() {
  database=$1
  schema=$2
  # Only makes the tables that note the version; a version already noted stays.
  temporal-sql-tool --database "$database" setup-schema --version 0.0
  temporal-sql-tool --database "$database" update-schema --schema-name "$schema"
}

create_schema temporal postgresql/v12/temporal
create_schema temporal_visibility postgresql/v12/visibility
