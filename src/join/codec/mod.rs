//! A join as bytes, for sending its description elsewhere.
//!
//! Layout: the magic, a version byte, both sides (schema as an Arrow IPC message, what the source declared), then the fields
//! of the join in the order of [`encode`]. Key and output columns are written as they were chosen, by name or position.

mod bytes;
mod expr;

use arrow_schema::SchemaRef;
use bytes::{BOOLS, Decoder, unreadable, write_bytes, write_column, write_len, write_list, write_option, write_tag};
use expr::write_expr;

use super::chosen_column::{JoinKey, ProjectedColumn};
use super::declared::{Declared, Sides};
use super::join_type::{JoinType, PartitionMode};
use super::spec::JoinSpec;
use super::validate::Validate;
use crate::columns::{decode_schema, encode_schema};
use crate::error::{Result, not_supported, plan_err};
use crate::expr::MAX_DEPTH;
use crate::prepare::NullEquality;

const MAGIC: &[u8] = b"prejoin.HashJoin";
const VERSION: u8 = 2;

// The tags are the positions in these lists; append only.
const JOIN_TYPES: &[JoinType] = &[
    JoinType::Inner,
    JoinType::ProbeOuter,
    JoinType::BuildOuter,
    JoinType::FullOuter,
    JoinType::ProbeSemi,
    JoinType::ProbeAnti,
    JoinType::ProbeMark,
    JoinType::BuildSemi,
    JoinType::BuildAnti,
];
const MODES: &[PartitionMode] = &[PartitionMode::CollectLeft, PartitionMode::Partitioned];
const NULL_EQUALITIES: &[NullEquality] = &[NullEquality::NullEqualsNothing, NullEquality::NullEqualsNull];
const VALIDATIONS: &[Validate] = &[Validate::ManyToMany, Validate::OneToOne, Validate::OneToMany, Validate::ManyToOne];

/// The join as bytes: everything that describes it, and of its sources what they declare.
pub(crate) fn encode(spec: &JoinSpec, sides: Sides<'_>) -> Result<Vec<u8>> {
    let mut out = [MAGIC, &[VERSION]].concat();
    write_side(spec.build_schema(), sides.build, &mut out)?;
    write_side(spec.probe_schema(), sides.probe, &mut out)?;
    write_list(&spec.chosen_on(), &mut out, |(build, probe), out| {
        write_column(build, out);
        write_column(probe, out);
    });
    write_tag(JOIN_TYPES, spec.join_type, &mut out);
    write_list(&spec.null_equality, &mut out, |&null_equality, out| write_tag(NULL_EQUALITIES, null_equality, out));
    write_option(spec.filter.as_ref(), &mut out, write_expr);
    write_option(spec.chosen_projection(), &mut out, |columns, out| write_list(&columns, out, write_projected));
    write_option(spec.limit, &mut out, write_len);
    write_tag(MODES, spec.mode, &mut out);
    write_tag(BOOLS, spec.null_aware, &mut out);
    write_tag(BOOLS, spec.coalesce, &mut out);
    write_option(spec.names.as_ref(), &mut out, |names, out| {
        write_list(names, out, |name, out| write_bytes(name.as_bytes(), out))
    });
    write_tag(VALIDATIONS, spec.validate, &mut out);
    Ok(out)
}

/// The join that [`encode`] wrote, and what its sources declared: (join, build side, probe side).
pub(crate) fn decode(bytes: &[u8]) -> Result<(JoinSpec, Declared, Declared)> {
    let Some(bytes) = bytes.strip_prefix(MAGIC) else {
        return plan_err!("these bytes are not a serialized HashJoin: they do not begin with its magic");
    };
    let mut input = match bytes.split_first() {
        Some((&VERSION, bytes)) => Decoder(bytes),
        Some((version, _)) => {
            return plan_err!(
                "this HashJoin was serialized as version {version}, this prejoin reads version {VERSION}"
            );
        }
        None => return Err(unreadable("it ends early")),
    };
    let ((build_schema, build), (probe_schema, probe)) = (input.side()?, input.side()?);
    let mut spec = JoinSpec::new(build_schema, probe_schema);
    let on: Vec<(JoinKey, JoinKey)> = input.list(|input| Ok((input.column()?.into(), input.column()?.into())))?;
    spec.set_on(&on)?;
    spec.join_type = input.tag(JOIN_TYPES)?;
    spec.null_equality = input.list(|input| input.tag(NULL_EQUALITIES))?;
    spec.filter = input.option(|input| input.expr(MAX_DEPTH))?;
    let projection = input.option(|input| input.list(Decoder::projected))?;
    spec.set_projection(projection)?;
    spec.limit = input.option(Decoder::len)?;
    spec.mode = input.tag(MODES)?;
    spec.null_aware = input.tag(BOOLS)?;
    spec.coalesce = input.tag(BOOLS)?;
    spec.names = input.option(|input| input.list(Decoder::text))?;
    spec.validate = input.tag(VALIDATIONS)?;
    input.end()?;
    Ok((spec, build, probe))
}

fn write_side(schema: &SchemaRef, declared: &Declared, out: &mut Vec<u8>) -> Result<()> {
    // What IPC leaves out, such as a dictionary of dictionaries, must not get lost in silence.
    let Some(message) = encode_schema(schema) else {
        return not_supported!(
            "Arrow IPC does not carry a schema of this join, so the join is not serialized: {schema}"
        );
    };
    write_bytes(&message, out);
    write_list(&declared.ordering, out, |&column, out| write_len(column, out));
    write_list(&declared.equal_columns, out, write_pair);
    Ok(())
}

fn write_pair(&(a, b): &(usize, usize), out: &mut Vec<u8>) {
    write_len(a, out);
    write_len(b, out);
}

fn write_projected(column: &ProjectedColumn, out: &mut Vec<u8>) {
    match column {
        ProjectedColumn::Position(position) => {
            out.push(0);
            write_len(*position, out);
        }
        ProjectedColumn::Build(name) => {
            out.push(1);
            write_bytes(name.as_bytes(), out);
        }
        ProjectedColumn::Probe(name) => {
            out.push(2);
            write_bytes(name.as_bytes(), out);
        }
        ProjectedColumn::Mark => out.push(3),
    }
}

impl Decoder<'_> {
    fn pair(&mut self) -> Result<(usize, usize)> {
        Ok((self.len()?, self.len()?))
    }

    fn projected(&mut self) -> Result<ProjectedColumn> {
        Ok(match self.byte()? {
            0 => ProjectedColumn::Position(self.len()?),
            1 => ProjectedColumn::Build(self.text()?),
            2 => ProjectedColumn::Probe(self.text()?),
            3 => ProjectedColumn::Mark,
            _ => return Err(unreadable("it holds an unknown choice")),
        })
    }

    /// A schema and what the source declared; rows and partitions are not sent.
    fn side(&mut self) -> Result<(SchemaRef, Declared)> {
        let schema = decode_schema(self.bytes()?).ok_or_else(|| unreadable("a schema is not readable"))?;
        let (ordering, equal_columns) = (self.list(Self::len)?, self.list(Self::pair)?);
        Ok((schema, Declared { ordering, equal_columns, ..Declared::partitions(1) }))
    }
}
