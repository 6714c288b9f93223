CREATE TABLE claims (
    name TEXT NOT NULL,
    owner TEXT NOT NULL,
    fence BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    CONSTRAINT pk_claims PRIMARY KEY (name)
)

CREATE TABLE heartbeats (
    node_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    usage TEXT NOT NULL,
    CONSTRAINT pk_heartbeats PRIMARY KEY (node_id)
)

CREATE TABLE jobs (
    id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    team TEXT,
    project TEXT,
    name TEXT NOT NULL,
    job_type TEXT NOT NULL,
    framework TEXT NOT NULL,
    entrypoint_uri TEXT,
    dataset_uri TEXT,
    execution_mode TEXT NOT NULL,
    gpus INTEGER NOT NULL,
    max_gpus_per_node INTEGER,
    requires_multi_node BOOLEAN NOT NULL,
    gpu_memory_gb DOUBLE PRECISION NOT NULL,
    cpu_memory_gb DOUBLE PRECISION NOT NULL,
    storage_gb DOUBLE PRECISION NOT NULL,
    estimated_hours DOUBLE PRECISION,
    locality TEXT NOT NULL,
    replication TEXT NOT NULL,
    budget_microusd BIGINT,
    budget_usd NUMERIC(20, 6) GENERATED ALWAYS AS (budget_microusd / 1000000.0) STORED,
    deadline_at BIGINT,
    allow_spot BOOLEAN NOT NULL,
    min_reliability DOUBLE PRECISION NOT NULL,
    performance_weight DOUBLE PRECISION NOT NULL,
    spec_yaml TEXT NOT NULL,
    code_digest TEXT,
    origin TEXT,
    lineage TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    status TEXT NOT NULL,
    desired TEXT NOT NULL,
    reason TEXT,
    selected_provider TEXT,
    selected_region TEXT,
    selected_backend TEXT,
    selected_instance_type TEXT,
    selected_count INTEGER,
    selected_spot BOOLEAN,
    started_at BIGINT,
    finished_at BIGINT,
    cost_running_microusd BIGINT NOT NULL,
    cost_running_usd NUMERIC(20, 6) GENERATED ALWAYS AS (cost_running_microusd / 1000000.0) STORED,
    cost_estimated_microusd BIGINT,
    cost_estimated_usd NUMERIC(20, 6) GENERATED ALWAYS AS (cost_estimated_microusd / 1000000.0) STORED,
    updated_at BIGINT,
    version INTEGER NOT NULL,
    CONSTRAINT pk_jobs PRIMARY KEY (id),
    CONSTRAINT ck_jobs_status CHECK (status IN ('pending', 'scheduled', 'provisioning', 'running', 'checkpointing', 'completed', 'failed', 'cancelled')),
    CONSTRAINT ck_jobs_desired CHECK (desired IN ('run', 'hold', 'cancel')),
    CONSTRAINT ck_jobs_job_type CHECK (job_type IN ('training', 'hpo', 'inference', 'eval', 'preprocessing')),
    CONSTRAINT ck_jobs_execution_mode CHECK (execution_mode IN ('single_cluster', 'multi_task')),
    CONSTRAINT ck_jobs_locality CHECK (locality IN ('prefer', 'required', 'ignore')),
    CONSTRAINT ck_jobs_replication CHECK (replication IN ('none', 'pre-stage', 'on-demand-cache')),
    CONSTRAINT ck_jobs_gpus CHECK (gpus >= 0)
)

CREATE INDEX ix_jobs_by_name ON jobs (name, created_at, id)

CREATE INDEX ix_jobs_by_status ON jobs (status, created_at, id)

CREATE INDEX ix_jobs_newest ON jobs (created_at, id)

CREATE INDEX ix_jobs_of_user ON jobs (user_id, created_at, id)

CREATE INDEX ix_jobs_unfinished ON jobs (created_at) WHERE status NOT IN ('completed', 'failed', 'cancelled')

CREATE TABLE progress (
    task_id TEXT NOT NULL,
    job_id TEXT NOT NULL,
    attempt_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    step BIGINT,
    total_steps BIGINT,
    fraction DOUBLE PRECISION,
    metrics TEXT NOT NULL,
    CONSTRAINT pk_progress PRIMARY KEY (task_id)
)

CREATE INDEX ix_progress_of_job ON progress (job_id)

CREATE TABLE servers (
    id TEXT NOT NULL,
    url TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    CONSTRAINT pk_servers PRIMARY KEY (id)
)

CREATE TABLE stream_segments (
    stream TEXT NOT NULL,
    number INTEGER NOT NULL,
    first_offset BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL,
    cursors TEXT NOT NULL,
    CONSTRAINT pk_stream_segments PRIMARY KEY (stream, number)
)

CREATE TABLE users (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT pk_users PRIMARY KEY (id),
    CONSTRAINT ck_users_role CHECK (role IN ('member', 'admin')),
    CONSTRAINT uq_users_name UNIQUE (name)
)

CREATE TABLE checkpoints (
    id BIGSERIAL NOT NULL,
    lineage TEXT NOT NULL,
    job_id TEXT NOT NULL,
    attempt_id TEXT NOT NULL,
    step BIGINT NOT NULL,
    uri TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    manifest_sha256 TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    metadata TEXT NOT NULL,
    CONSTRAINT pk_checkpoints PRIMARY KEY (id),
    CONSTRAINT uq_checkpoints_lineage_step_manifest_sha256 UNIQUE (lineage, step, manifest_sha256),
    CONSTRAINT fk_checkpoints_job_id FOREIGN KEY(job_id) REFERENCES jobs (id)
)

CREATE TABLE events (
    seq BIGSERIAL NOT NULL,
    job_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    entity_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    at BIGINT NOT NULL,
    type TEXT NOT NULL,
    body TEXT NOT NULL,
    CONSTRAINT pk_events PRIMARY KEY (seq),
    CONSTRAINT uq_events_kind_entity_id_version UNIQUE (kind, entity_id, version),
    CONSTRAINT fk_events_job_id FOREIGN KEY(job_id) REFERENCES jobs (id)
)

CREATE INDEX ix_events_of_job ON events (job_id, seq)

CREATE TABLE job_artifacts (
    id BIGSERIAL NOT NULL,
    job_id TEXT NOT NULL,
    type TEXT NOT NULL,
    uri TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    meta_json TEXT NOT NULL,
    CONSTRAINT pk_job_artifacts PRIMARY KEY (id),
    CONSTRAINT ck_job_artifacts_type CHECK (type IN ('checkpoint', 'log', 'output', 'metrics')),
    CONSTRAINT uq_job_artifacts_job_id_type_uri UNIQUE (job_id, type, uri),
    CONSTRAINT fk_job_artifacts_job_id FOREIGN KEY(job_id) REFERENCES jobs (id)
)

CREATE TABLE job_events (
    id BIGINT NOT NULL,
    job_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    from_status TEXT,
    to_status TEXT NOT NULL,
    reason TEXT,
    meta_json TEXT NOT NULL,
    CONSTRAINT pk_job_events PRIMARY KEY (id),
    CONSTRAINT ck_job_events_to_status CHECK (to_status IN ('pending', 'scheduled', 'provisioning', 'running', 'checkpointing', 'completed', 'failed', 'cancelled')),
    CONSTRAINT fk_job_events_job_id FOREIGN KEY(job_id) REFERENCES jobs (id)
)

CREATE INDEX ix_job_events_of_job ON job_events (job_id, at)

CREATE TABLE tasks (
    id TEXT NOT NULL,
    job_id TEXT NOT NULL,
    index INTEGER NOT NULL,
    created_at BIGINT NOT NULL,
    phase TEXT NOT NULL,
    reason TEXT,
    attempts INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    losses INTEGER NOT NULL,
    attempt_id TEXT,
    not_before BIGINT,
    deadline_at BIGINT,
    version INTEGER NOT NULL,
    CONSTRAINT pk_tasks PRIMARY KEY (id),
    CONSTRAINT ck_tasks_phase CHECK (phase IN ('waiting', 'scheduled', 'provisioning', 'running', 'checkpointing', 'succeeded', 'failed', 'cancelled')),
    CONSTRAINT uq_tasks_job_id_index UNIQUE (job_id, index),
    CONSTRAINT fk_tasks_job_id FOREIGN KEY(job_id) REFERENCES jobs (id)
)

CREATE INDEX ix_tasks_due ON tasks (deadline_at) WHERE phase NOT IN ('succeeded', 'failed', 'cancelled')

CREATE INDEX ix_tasks_of_job ON tasks (job_id, phase, index, attempts)

CREATE INDEX ix_tasks_unfinished ON tasks (job_id) WHERE phase NOT IN ('succeeded', 'failed', 'cancelled')

CREATE INDEX ix_tasks_waiting ON tasks (job_id) WHERE phase = 'waiting'

CREATE TABLE tokens (
    id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    CONSTRAINT pk_tokens PRIMARY KEY (id),
    CONSTRAINT uq_tokens_digest UNIQUE (digest),
    CONSTRAINT fk_tokens_user_id FOREIGN KEY(user_id) REFERENCES users (id)
)

CREATE INDEX ix_tokens_of_user ON tokens (user_id)

CREATE TABLE attempts (
    id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    job_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    leases TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    deadline_at BIGINT NOT NULL,
    phase TEXT NOT NULL,
    is_checkpointing BOOLEAN NOT NULL,
    generation INTEGER NOT NULL,
    master_addr TEXT,
    master_port INTEGER,
    resume_step BIGINT,
    stop_outcome TEXT,
    outcome TEXT,
    reason TEXT,
    started_at BIGINT,
    ended_at BIGINT,
    version INTEGER NOT NULL,
    CONSTRAINT pk_attempts PRIMARY KEY (id),
    CONSTRAINT ck_attempts_phase CHECK (phase IN ('provisioning', 'starting', 'running', 'stopping', 'ended')),
    CONSTRAINT ck_attempts_stop_outcome CHECK (stop_outcome IN ('succeeded', 'failed', 'timed_out', 'lost', 'unplaced', 'cancelled', 'held')),
    CONSTRAINT ck_attempts_outcome CHECK (outcome IN ('succeeded', 'failed', 'timed_out', 'lost', 'unplaced', 'cancelled', 'held')),
    CONSTRAINT uq_attempts_task_id_number UNIQUE (task_id, number),
    CONSTRAINT fk_attempts_task_id FOREIGN KEY(task_id) REFERENCES tasks (id),
    CONSTRAINT fk_attempts_job_id FOREIGN KEY(job_id) REFERENCES jobs (id)
)

CREATE INDEX ix_attempts_due ON attempts (deadline_at) WHERE phase <> 'ended'

CREATE UNIQUE INDEX ix_attempts_live ON attempts (task_id) WHERE phase <> 'ended'

CREATE INDEX ix_attempts_of_job ON attempts (job_id)

CREATE TABLE orders (
    id TEXT NOT NULL,
    job_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    region TEXT NOT NULL,
    backend TEXT NOT NULL,
    offer TEXT NOT NULL,
    instance_type TEXT NOT NULL,
    count INTEGER NOT NULL,
    gpus INTEGER NOT NULL,
    is_spot BOOLEAN NOT NULL,
    price_per_hour_microusd BIGINT NOT NULL,
    body TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    deadline_at BIGINT NOT NULL,
    phase TEXT NOT NULL,
    called_at BIGINT,
    reason TEXT,
    version INTEGER NOT NULL,
    CONSTRAINT pk_orders PRIMARY KEY (id),
    CONSTRAINT ck_orders_phase CHECK (phase IN ('pending', 'unknown', 'filled', 'refused', 'abandoned')),
    CONSTRAINT fk_orders_job_id FOREIGN KEY(job_id) REFERENCES jobs (id),
    CONSTRAINT fk_orders_task_id FOREIGN KEY(task_id) REFERENCES tasks (id)
)

CREATE INDEX ix_orders_of_task ON orders (task_id)

CREATE INDEX ix_orders_unsettled ON orders (provider, created_at) WHERE phase IN ('pending', 'unknown')

CREATE TABLE allocations (
    id BIGSERIAL NOT NULL,
    job_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    attempt_id TEXT NOT NULL,
    order_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    region TEXT NOT NULL,
    backend TEXT NOT NULL,
    instance_type TEXT NOT NULL,
    count INTEGER NOT NULL,
    spot BOOLEAN NOT NULL,
    price_per_hour_microusd BIGINT NOT NULL,
    price_per_hour NUMERIC(20, 6) GENERATED ALWAYS AS (price_per_hour_microusd / 1000000.0) STORED,
    estimated_hours DOUBLE PRECISION,
    estimated_cost_microusd BIGINT NOT NULL,
    estimated_cost_usd NUMERIC(20, 6) GENERATED ALWAYS AS (estimated_cost_microusd / 1000000.0) STORED,
    created_at BIGINT NOT NULL,
    CONSTRAINT pk_allocations PRIMARY KEY (id),
    CONSTRAINT uq_allocations_attempt_id_order_id UNIQUE (attempt_id, order_id),
    CONSTRAINT fk_allocations_job_id FOREIGN KEY(job_id) REFERENCES jobs (id),
    CONSTRAINT fk_allocations_task_id FOREIGN KEY(task_id) REFERENCES tasks (id),
    CONSTRAINT fk_allocations_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id),
    CONSTRAINT fk_allocations_order_id FOREIGN KEY(order_id) REFERENCES orders (id)
)

CREATE INDEX ix_allocations_of_job ON allocations (job_id)

CREATE TABLE leases (
    id TEXT NOT NULL,
    order_id TEXT NOT NULL,
    job_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    region TEXT NOT NULL,
    backend TEXT NOT NULL,
    index INTEGER NOT NULL,
    gpus INTEGER NOT NULL,
    price_per_hour_microusd BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    deadline_at BIGINT,
    phase TEXT NOT NULL,
    machine_id TEXT,
    node_id TEXT,
    devices TEXT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    missing_since BIGINT,
    delete_tries INTEGER NOT NULL,
    reason TEXT,
    version INTEGER NOT NULL,
    CONSTRAINT pk_leases PRIMARY KEY (id),
    CONSTRAINT ck_leases_phase CHECK (phase IN ('requested', 'active', 'closing', 'closed')),
    CONSTRAINT uq_leases_order_id_index UNIQUE (order_id, index),
    CONSTRAINT fk_leases_order_id FOREIGN KEY(order_id) REFERENCES orders (id),
    CONSTRAINT fk_leases_job_id FOREIGN KEY(job_id) REFERENCES jobs (id),
    CONSTRAINT fk_leases_task_id FOREIGN KEY(task_id) REFERENCES tasks (id)
)

CREATE INDEX ix_leases_moving ON leases (phase, deadline_at) WHERE phase IN ('requested', 'closing')

CREATE INDEX ix_leases_of_job ON leases (job_id)

CREATE INDEX ix_leases_open_of_provider ON leases (provider) WHERE phase <> 'closed'

CREATE INDEX ix_leases_open_of_task ON leases (task_id) WHERE phase <> 'closed'

CREATE TABLE ranks (
    attempt_id TEXT NOT NULL,
    generation INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    node_id TEXT NOT NULL,
    node_rank INTEGER NOT NULL,
    local_rank INTEGER NOT NULL,
    devices TEXT NOT NULL,
    state TEXT NOT NULL,
    exit_code BIGINT,
    signal INTEGER,
    reason TEXT,
    started_at BIGINT,
    ended_at BIGINT,
    CONSTRAINT pk_ranks PRIMARY KEY (attempt_id, generation, rank),
    CONSTRAINT ck_ranks_state CHECK (state IN ('assigned', 'started', 'exited')),
    CONSTRAINT fk_ranks_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id)
)

CREATE TABLE nodes (
    id TEXT NOT NULL,
    lease_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    machine_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    address TEXT NOT NULL,
    rendezvous_port INTEGER NOT NULL,
    facts TEXT NOT NULL,
    enrolled_at BIGINT NOT NULL,
    phase TEXT NOT NULL,
    version INTEGER NOT NULL,
    CONSTRAINT pk_nodes PRIMARY KEY (id),
    CONSTRAINT ck_nodes_phase CHECK (phase IN ('enrolled', 'retired')),
    CONSTRAINT fk_nodes_lease_id FOREIGN KEY(lease_id) REFERENCES leases (id),
    CONSTRAINT fk_nodes_task_id FOREIGN KEY(task_id) REFERENCES tasks (id)
)

CREATE INDEX ix_nodes_of_lease ON nodes (lease_id)

CREATE INDEX ix_nodes_of_task ON nodes (task_id)

CREATE FUNCTION crucible_terminal() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION '%: terminal is for ever', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$

CREATE FUNCTION crucible_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$

CREATE TRIGGER jobs_terminal BEFORE UPDATE OF status ON jobs FOR EACH ROW WHEN (OLD.status IN ('completed', 'failed', 'cancelled') AND NEW.status <> OLD.status) EXECUTE FUNCTION crucible_terminal()

CREATE TRIGGER tasks_terminal BEFORE UPDATE OF phase ON tasks FOR EACH ROW WHEN (OLD.phase IN ('succeeded', 'failed', 'cancelled') AND NEW.phase <> OLD.phase) EXECUTE FUNCTION crucible_terminal()

CREATE TRIGGER attempts_terminal BEFORE UPDATE OF phase ON attempts FOR EACH ROW WHEN (OLD.phase IN ('ended') AND NEW.phase <> OLD.phase) EXECUTE FUNCTION crucible_terminal()

CREATE TRIGGER events_append_only BEFORE UPDATE OR DELETE ON events FOR EACH ROW EXECUTE FUNCTION crucible_append_only()

CREATE TRIGGER events_no_truncate BEFORE TRUNCATE ON events EXECUTE FUNCTION crucible_append_only()

CREATE TRIGGER job_events_append_only BEFORE UPDATE OR DELETE ON job_events FOR EACH ROW EXECUTE FUNCTION crucible_append_only()

CREATE TRIGGER job_events_no_truncate BEFORE TRUNCATE ON job_events EXECUTE FUNCTION crucible_append_only()

CREATE TRIGGER allocations_append_only BEFORE UPDATE OR DELETE ON allocations FOR EACH ROW EXECUTE FUNCTION crucible_append_only()

CREATE TRIGGER allocations_no_truncate BEFORE TRUNCATE ON allocations EXECUTE FUNCTION crucible_append_only()
