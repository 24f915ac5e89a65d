import type { DataSource } from 'typeorm'

/**
 * Has every record of an attempt fail with a SQLSTATE while it is switched on. The trigger stands from the begin, since
 * creating it in mid-play would have to wait for paused writers, and everybody else behind it.
 */
export type RecordingFault = { begin(sqlstate: string): Promise<void>; end(): Promise<void> }

export async function createRecordingFault(dataSource: DataSource): Promise<RecordingFault> {
  await dataSource.query('CREATE TABLE play_fault (sqlstate text NOT NULL)')
  await dataSource.query(`CREATE FUNCTION play_fault() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE wanted text;
    BEGIN
      SELECT sqlstate INTO wanted FROM play_fault LIMIT 1;
      IF wanted IS NOT NULL THEN RAISE EXCEPTION 'injected fault' USING ERRCODE = wanted; END IF;
      RETURN NEW;
    END $$`)
  await dataSource.query(
    'CREATE TRIGGER play_fault BEFORE INSERT ON attempt FOR EACH ROW EXECUTE FUNCTION play_fault()',
  )
  return {
    begin: async (sqlstate) => {
      await dataSource.query('INSERT INTO play_fault VALUES ($1)', [sqlstate])
    },
    end: async () => {
      await dataSource.query('DELETE FROM play_fault')
    },
  }
}
