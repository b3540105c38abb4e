//! stub
use crate::error::Result;
use arrow_array::*;
use arrow_schema::SchemaRef;
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Side {
    Build,
    Probe,
}
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnRef;
impl ColumnRef {
    pub fn position(&self, _: &SchemaRef) -> Result<usize> {
        unimplemented!()
    }
}
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    Column(ColumnRef),
}
impl std::fmt::Display for Expr {
    fn fmt(&self, _f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Ok(())
    }
}
#[derive(Debug)]
pub struct Predicate;
impl Expr {
    pub fn bind(&self, _: &SchemaRef, _: &SchemaRef) -> Result<Predicate> {
        unimplemented!()
    }
}
impl Predicate {
    pub fn columns(&self) -> &[(Side, usize)] {
        &[]
    }
    pub fn evaluate(&self, _: &[ArrayRef], _: usize) -> Result<BooleanArray> {
        unimplemented!()
    }
}
